"""Make every source of randomness of a sampler take its numbers from the tape, or refuse it.

During one run ``intercepted`` replaces torch's random functions (by a function mode), the random functions of
Python and numpy, and Triton's interpreter.  We refuse generators of Python and numpy that the sampler makes
itself, the system's randomness, and everything that leaves the process.  The tag ``nondeterministic_seeded``
marks every other torch operator that reads a generator.  To find draws by any other name, we compare the
states of existing generators of Python and numpy before and after the run.

We identify a number by what its generator draws next.  So states that differ only elsewhere, such as in the
upper half of a seed, count as equal.  Two draws in one state get the same numbers, which is a finding.
"""

import dis
import gc
import inspect
import operator
import os
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import chain, compress, takewhile
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from spectheory.auditing.following.isolation import (
    Replacement,
    closed,
    imports_outside,
    refusing,
    replaced,
)
from spectheory.auditing.following.kernel_draws import Draws, read_again
from spectheory.auditing.following.memory import COPYING, SHARING, made, note, share, watched
from spectheory.auditing.following.random_tensor import (
    REAL,
    RandomTensor,
    become_random,
    changed_in_place,
    random_tensor,
    unwrapped,
)
from spectheory.auditing.following.triton_kernels import followed
from spectheory.auditing.tape.atoms import uniform_number, whole_number
from spectheory.auditing.tape.coins import CoinGenerator, UniformDraw
from spectheory.auditing.tape.decisions import (
    HiddenRandomnessError,
    NotEnumerableError,
    Tape,
    unswallowed,
)
from spectheory.auditing.tape.races import Exponential, ExponentialDraw, UndefinedDrawError
from spectheory.foundation.errors import LONGEST_TEXT, InvalidInputError, InvalidOutcomeError, text_of
from spectheory.foundation.exact_numbers import exact_number
from spectheory.verification.user import users_line

GLOBAL_SEED = 24_301
"""The seed of torch's global generator at the start of a run."""
MAX_BRANCHES = 16
"""A whole number of more values is split into cases only where it is used."""


@dataclass
class Journal:
    """Observations in all runs of a sampler.

    Attributes:
        primitives: the random functions that the sampler called, with the law of their numbers.
        findings: defects that do not depend on the law, as (subject of the audit, text).
        undefined: the reasons why runs ended without a result.
        raised: the reasons in ``undefined`` that are exceptions of the sampler.
        reads_greedy: whether the sampler reads which requests of a batch are greedy.
        refused: kinds of inputs that the sampler refuses, in words.
        runs, repeated: the number of runs, and the number of runs that we made twice.
        pairs_of_calls: the number of runs of two consecutive calls.
        names: the global names of the sampler's module, if we can replace ``float`` there.
    """

    primitives: set[str] = field(default_factory=set)
    findings: set[tuple[str, str]] = field(default_factory=set)
    undefined: set[str] = field(default_factory=set)
    raised: set[str] = field(default_factory=set)
    reads_greedy: bool = False
    refused: list[str] = field(default_factory=list)
    runs: int = 0
    repeated: int = 0
    pairs_of_calls: int = 0
    names: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def generators(self) -> list[Any]:
        """numpy's generators that exist before the first run, including the global generator."""
        return _existing_generators()


def _existing_generators() -> list[Any]:
    """List numpy's generators, including frozen ones (``gc.freeze``).

    The garbage collector does not list frozen objects, so we unfreeze them if objects were frozen since our
    last list.  We notice this by the canary, an object made after that list: then it is not listed either.
    """
    objects = gc.get_objects()
    if _FROZEN.canary is None or id(_FROZEN.canary) not in map(id, objects):
        if gc.get_freeze_count():  # walks over all of them
            gc.unfreeze()
            _FROZEN.generators, objects = _generators_of(gc.get_objects()), []
            gc.freeze()
        _FROZEN.canary = []
    return _FROZEN.generators + _generators_of(objects)


def _generators_of(objects: Sequence[Any]) -> list[Any]:
    kinds = {np.random.Generator, np.random.RandomState}
    # Hundreds of thousands of objects: no line of Python runs for each of them.
    return list(compress(objects, map(kinds.__contains__, map(type, objects))))


@dataclass
class _Frozen:
    generators: list[Any] = field(default_factory=list)
    canary: list[Any] | None = None


_FROZEN = _Frozen()


_ONE_AT_A_TIME = threading.RLock()
"""Held while the random functions of this process are replaced."""


@contextmanager
def intercepted(tape: Tape, journal: Journal, *handed: torch.Generator) -> Iterator[None]:
    """Inside this context, all random numbers come from the tape.

    Args:
        tape: the tape of the run.
        journal: receives the observations.
        handed: the generators that the sampler is given.

    Raises:
        NotEnumerableError: the code uses an unknown random function, a network or another process.
        HiddenRandomnessError: the code drew a number with a function that we do not replace, or in a thread.
        InvalidInputError: another thread has replaced the random functions.
    """
    with only_one_at_a_time():
        yield from _intercepted(tape, journal, handed)


@contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Lock the random functions of this process, so that no other thread can replace them."""
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise InvalidInputError(
            "another thread of this process audits a sampler, and an audit replaces the random functions of "
            "the whole process; audit one after the other, or in another process"
        )
    try:
        yield
    finally:
        _ONE_AT_A_TIME.release()


def _intercepted(tape: Tape, journal: Journal, handed: Sequence[torch.Generator]) -> Iterator[None]:
    before, torch_state = _states(journal.generators), torch.get_rng_state()
    seed = GLOBAL_SEED + tape.seed
    torch.default_generator.manual_seed(seed)
    sentinel, steps = _Sentinel(), _Steps([torch.default_generator, *handed])
    try:
        with ExitStack() as stack:
            stack.enter_context(unswallowed())
            stack.enter_context(closed())
            originals = stack.enter_context(replaced(_replacements(tape, journal)))
            stack.enter_context(imports_outside(originals))
            stack.enter_context(followed(Draws(tape, journal.primitives, journal.findings)))
            stack.enter_context(watched())
            stack.enter_context(float_followed(journal.names))
            stack.enter_context(sentinel)
            stack.enter_context(_Answers(tape, journal, sentinel, steps))
            with _unknown_to_others():
                yield
            steps.check()
            if torch.default_generator.initial_seed() != seed:
                journal.findings.add(("contract", "it gives torch's global generator a seed"))
    except NotEnumerableError as error:
        tape.numbers.clear()  # the run is not made again, and Triton's interpreter keeps its tape
        raise type(error)(f"{error}{users_line(error)}") from error
    finally:
        torch.set_rng_state(torch_state)
    if _states(journal.generators) != before:
        raise HiddenRandomnessError(
            "the sampler draws from a generator that it keeps, or from Python's or numpy's global one by a "
            "name that was imported on its own (`from random import ..`)"
        )


@contextmanager
def _unknown_to_others() -> Iterator[None]:
    """Refuse the run if a function that this package does not replace fails on a random number."""
    try:
        yield
    except Exception as error:
        raised = error.__cause__ if isinstance(error, InvalidOutcomeError) else error
        said, place = ("", "") if raised is None else (text_of(raised, longest=None), users_line(raised))
        if _SCRIPT in said:
            raise NotEnumerableError(
                f"the sampler runs TorchScript, which is not followed; leave it out{place}"
            ) from error
        if not isinstance(raised, InvalidInputError) and _OUR_CLASSES.search(said):
            raise NotEnumerableError(
                "the sampler hands a random number to a function that is not followed "
                f"({said[:LONGEST_TEXT]}); compare it{place}"
            ) from error
        raise


_SCRIPT = "operation failed in the TorchScript interpreter"
_OUR_CLASSES = re.compile(r"\b(RandomTensor|RandomArray|UniformDraw|ExponentialDraw|ArgmaxWinner)\b")


def _states(generators: Sequence[Any]) -> list[Any]:
    def frozen(state: Any) -> Any:
        if isinstance(state, dict):
            return [frozen(part) for part in state.values()]
        return state.tobytes() if isinstance(state, np.ndarray) else state

    return [random.getstate(), *(frozen(generator._bit_generator.state) for generator in generators)]


def _state(generator: torch.Generator) -> bytes:
    return generator.get_state().numpy().tobytes()


def _next_numbers(generator: torch.Generator) -> tuple[int, ...]:
    """The numbers that a generator draws next.  We draw them from a copy."""
    copy = torch.Generator(generator.device)
    copy.set_state(generator.get_state())
    with _disable_current_modes():
        return tuple(torch.empty(8, dtype=torch.int64, device=copy.device).random_(generator=copy).tolist())


class _Steps:
    """The states of torch's generators before and after draws that we follow.

    Any other state comes from a draw that we do not follow.  For example, a mode of torch holds in one thread
    only, so we do not follow draws in other threads.
    """

    def __init__(self, generators: Sequence[torch.Generator]) -> None:
        self._known = {
            id(generator): (generator, generator.initial_seed(), {_state(generator)})
            for generator in generators
        }

    def check(self) -> None:
        """Refuse a generator in an unknown state, if it still has its seed."""
        for generator, seed, states in self._known.values():
            if generator.initial_seed() == seed and _state(generator) not in states:
                raise HiddenRandomnessError(
                    "the sampler draws from a generator of torch where it is not followed, as in a thread"
                )

    def after(self, generator: torch.Generator) -> None:
        """Record the state after a draw that we follow."""
        if id(generator) in self._known:
            self._known[id(generator)][2].add(_state(generator))


class _Sentinel(TorchDispatchMode):
    """Refuses every torch operator that reads a random generator, except those that ``_Answers`` runs."""

    is_open = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Without this method torch imports its compiler to exclude this class, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _draws(func) and not self.is_open:
            raise NotEnumerableError(f"the sampler draws from {func}, whose law is not known here")
        return note(func, args, kwargs or {}, RandomTensor)


@cache
def _draws(func: Any) -> bool:
    """Whether an operator of torch reads a random generator."""
    return torch.Tag.nondeterministic_seeded in func.tags


class _Answers(TorchFunctionMode):
    def __init__(self, tape: Tape, journal: Journal, sentinel: _Sentinel, steps: _Steps) -> None:
        super().__init__()
        self.tape, self.journal, self.sentinel, self.steps = tape, journal, sentinel, steps
        self.read: dict[tuple[int, ...], tuple[int, Any, Any]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if kwargs.get("pin_memory"):  # where the copies to a device are made from: the numbers are the same
            kwargs = {**kwargs, "pin_memory": False}
        if func is torch.Tensor.pin_memory:
            return args[0]
        name = getattr(func, "__name__", "")
        answer = _ANSWERS[name] if func in _ANSWERED else None
        if answer is None:
            if name in SHARING:
                share(args[0])
            if name == "__set__" and any(isinstance(arg, RandomTensor) for arg in args):
                raise NotEnumerableError("the sampler puts random numbers into the memory of another tensor")
            result = func(*args, **kwargs)
            if func in COPYING and type(result) is torch.Tensor:
                made((result,))
            if name.endswith("_") and args:
                changed_in_place(args[0])
            return result
        if kwargs.get("out") is not None:
            raise NotEnumerableError(f"{name} writes random numbers to a tensor by out; take its result")
        generator = kwargs.get("generator") or torch.default_generator
        self.steps.check()
        state = _next_numbers(generator)
        drawn = self._really_drawn(func, args, kwargs)
        self.steps.after(generator)
        if not drawn.numel():  # of no numbers: the generator is where it was
            return drawn
        kind = func.__name__, tuple(drawn.shape), drawn.dtype
        if state in self.read:
            call, read, drawn_before = self.read[state]
            is_used = drawn_before is None or any(number.is_used for number in drawn_before.flat)
            self.journal.findings.update(read_again(kind[0], read[0], self.tape.call - call, is_used))
            if read != kind or drawn_before is None:
                raise NotEnumerableError(f"{kind[0]} reads random numbers again in another form")
            return _place(drawn, drawn_before, func)
        result = answer(self.tape, func, drawn, args, kwargs)
        numbers = result.numbers.copy() if isinstance(result, RandomTensor) else None  # others may change
        self.read[state] = self.tape.call, kind, numbers
        if self.tape.again is None:
            self.journal.primitives.add(_described(kind[0], result))
        return result

    def _really_drawn(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        """Run torch's own draw, for its shape, dtype and errors, and to advance the generator."""
        self.sentinel.is_open = True
        try:
            return unwrapped(func, args, kwargs)
        except RuntimeError as error:
            raise UndefinedDrawError(f"torch.{func.__name__}: {error}") from error
        finally:
            self.sentinel.is_open = False


def _place(drawn: torch.Tensor, numbers: np.ndarray, func: Any) -> torch.Tensor:
    if all(isinstance(number, float) for number in numbers.flat):  # of a run that is made again
        return drawn.copy_(torch.from_numpy(numbers.astype(float)))
    in_place = func.__name__.endswith("_")
    return become_random(drawn, numbers) if in_place else random_tensor(numbers, drawn.dtype)


def _described(name: str, result: Any) -> str:
    first = result.numbers.flat[0] if isinstance(result, RandomTensor) and result.numbers.size else None
    if first is None:
        return f"{name}: with probabilities proportional to the floats it is given"
    if isinstance(first, ExponentialDraw):
        return f"{name}: exponential, as real numbers"
    return f"{name}: {first.sources[0].grid.name}"


def filled(shape: Any, make: Callable[[], Any]) -> np.ndarray:
    """An object array with one new object per entry."""
    numbers = np.empty(tuple(shape), dtype=object)
    for place in np.ndindex(numbers.shape):
        numbers[place] = make()
    return numbers


def _uniform(tape: Tape, func: Any, drawn: torch.Tensor, args: Any, kwargs: Any) -> Any:
    return _place(drawn, _numbers(tape, drawn, lambda: uniform_number(tape, drawn.dtype)), func)


def _numbers(tape: Tape, drawn: torch.Tensor, make: Callable[[], Any]) -> np.ndarray:
    return filled(drawn.shape, lambda: tape.number(make))


def _uniform_between(tape: Tape, func: Any, drawn: torch.Tensor, args: Any, kwargs: Any) -> Any:
    """``tensor.uniform_(from, to)``: torch computes u (to - from) + from."""
    ends = (*args[1:3], *([0.0, 1.0][len(args[1:3]) :]))
    low, high = kwargs.get("from", ends[0]), kwargs.get("to", ends[1])
    handed = _numbers(tape, drawn, lambda: uniform_number(tape, drawn.dtype))
    if tape.again is not None:
        return _place(drawn, handed * (high - low) + low, func)
    numbers: Any = random_tensor(handed, drawn.dtype)
    if (low, high) != (0, 1):
        numbers = numbers * (high - low) + low
    return become_random(drawn, numbers.numbers)


def _exponential(tape: Tape, func: Any, drawn: torch.Tensor, args: Any, kwargs: Any) -> Any:
    if drawn.dtype not in REAL:
        raise NotEnumerableError(
            f"the sampler draws exponential random numbers of {drawn.dtype}, which has too few values for a "
            "race of real numbers; draw them in float32"
        )
    rate = exact_number(args[1] if len(args) > 1 else kwargs.get("lambd", 1.0))
    return _place(drawn, _numbers(tape, drawn, lambda: ExponentialDraw(Exponential(tape), rate)), func)


def _weight(func: Any, weight: Any) -> Fraction:
    if isinstance(weight, RandomTensor):
        raise NotEnumerableError(
            f"the sampler draws by {func.__name__} with probabilities that are random numbers, which is not "
            "followed"
        )
    return exact_number(weight)


def _multinomial(tape: Tape, func: Any, drawn: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
    weights = args[0] if args else kwargs["input"]
    replacement = kwargs.get("replacement", args[2] if len(args) > 2 else False)
    rows = weights.reshape(-1, weights.shape[-1]).tolist()
    chosen = drawn.reshape(len(rows), -1)
    for row, places in zip(rows, chosen, strict=True):
        left = [_weight(func, weight) for weight in row]
        for number in range(len(places)):
            if not any(left):
                raise NotEnumerableError(
                    f"torch.multinomial draws {len(places)} entries without replacement where {number} have "
                    "weight, and does not say which of the others follow; draw fewer"
                )
            token = tape.draw_among(left)
            places[number] = token
            if not replacement:
                left[token] = Fraction(0)
    return chosen.reshape(drawn.shape)


def _bernoulli(tape: Tape, func: Any, drawn: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
    """``torch.bernoulli(probs)`` and ``tensor.bernoulli_(p)``, which ignores the tensor's entries.

    ``p`` is a probability or a tensor of probabilities.  For ``tensor.bernoulli_()`` it is one half.
    """
    given = args[1] if len(args) > 1 else kwargs.get("p")
    if given is None:
        given = 0.5 if func.__name__.endswith("_") else args[0] if args else kwargs["input"]
    probs = torch.broadcast_to(torch.as_tensor(given), drawn.shape)
    for place in np.ndindex(tuple(drawn.shape)):
        prob = _weight(func, probs[place].item())
        drawn[place] = tape.draw([1 - prob, prob])
    return drawn


def _whole_numbers(tape: Tape, func: Any, drawn: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
    if any(isinstance(end, RandomTensor) for end in (*args, *kwargs.values())):
        raise NotEnumerableError("the sampler draws whole numbers between ends that are random")
    ends = [*takewhile(lambda end: not isinstance(end, (tuple, list)), args)]  # before the shape
    low, high = map(kwargs.get, ("low", "high"))
    if high is None:
        high = ends.pop()
    low, high = operator.index(ends[0] if ends else low or 0), operator.index(high)
    if high - low > MAX_BRANCHES:
        return _place(drawn, _numbers(tape, drawn, lambda: whole_number(tape, low, high)), func)
    for place in np.ndindex(tuple(drawn.shape)):
        drawn[place] = low + tape.draw([Fraction(1, high - low)] * (high - low))
    return drawn


_ANSWERS: dict[str, Callable[..., Any]] = {
    "rand": _uniform,
    "rand_like": _uniform,
    "uniform_": _uniform_between,
    "exponential_": _exponential,
    "multinomial": _multinomial,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "randint": _whole_numbers,
}


_ANSWERED = {
    getattr(owner, name) for owner in (torch, torch.Tensor) for name in _ANSWERS if hasattr(owner, name)
}
"""torch's own functions: a sampler may give another one such a name."""


def _replacements(tape: Tape, journal: Journal) -> Iterator[Replacement]:
    coins = CoinGenerator(tape)

    def python_uniform() -> Any:
        journal.primitives.add("random.random: multiples of 2^-53")
        drawn = tape.number(lambda: uniform_number(tape, torch.float64))
        if isinstance(drawn, float):  # of a run that is made again
            return drawn
        number = np.array(None, dtype=object)
        number[()] = drawn
        return random_tensor(number, torch.float64, is_python=True)

    seeds: dict[str, int] = {}

    def numpy_generator(seed: Any = None) -> CoinGenerator:
        journal.primitives.add("numpy.random.default_rng: real numbers")
        # Seeds that are written differently can be the same one, such as 7 and [7].
        key = "" if seed is None else _stream_of(seed)
        if seed is not None and key in seeds:
            calls = tape.call - seeds[key]
            journal.findings.update(read_again("numpy.random.default_rng", "it", calls, is_used=True))
            raise NotEnumerableError("numpy.random.default_rng is given a seed for the second time")
        seeds[key] = tape.call
        return coins

    yield random, "random", python_uniform
    yield random, "uniform", lambda a, b: a + (b - a) * python_uniform()
    yield random, "choices", coins.choices
    yield np.random, "default_rng", numpy_generator
    for module, name in _GLOBAL_FUNCTIONS:
        if (module, name) not in _FOLLOWED:
            yield module, name, _refusal(f"{module.__name__}.{name}")
    for name in ("seed", "random", "getrandbits"):
        refused = _refusal("random.Random, a separate generator")
        yield random.Random, name, _allowed_in_names(getattr(random.Random, name), refused)
        yield random.SystemRandom, name, _refusal("random.SystemRandom")
    for owner, name in ((os, "urandom"), (os, "getrandom"), (random, "_urandom")):
        if hasattr(owner, name):
            yield owner, name, _refusal("the system's randomness")
    yield threading.Thread, "start", _started(threading.Thread.start)
    yield ThreadPoolExecutor, "submit", _THREAD
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    if hasattr(compiler, "_callback_from_stance"):
        yield compiler, "_callback_from_stance", _not_compiled
    for name in _NUMPY_GENERATORS.split():
        yield np.random, name, _refused_class(getattr(np.random, name))


_GLOBAL_FUNCTIONS = [(np.random, name) for name in ("seed", "ranf", "sample")] + [
    (module, name)
    for module, owner in ((random, random.random.__self__), (np.random, np.random.random.__self__))  # type: ignore[attr-defined]
    for name, function in vars(module).items()
    if getattr(function, "__self__", None) is owner and not re.search("state|bit_generator|^_", name)
]
"""The functions of the global generators."""
_FOLLOWED = [(random, "random"), (random, "uniform"), (random, "choices")]
_NUMPY_GENERATORS = "Generator RandomState MT19937 PCG64 PCG64DXSM Philox SFC64 SeedSequence"


_SEED_SEQUENCE = np.random.SeedSequence
"""The class itself: in a run another stands in its place."""


def _stream_of(seed: Any) -> str:
    """Key of the stream of numbers that numpy computes from a seed."""
    try:
        sequence = seed if isinstance(seed, _SEED_SEQUENCE) else _SEED_SEQUENCE(seed)
        return repr(sequence.generate_state(4).tolist())
    except (TypeError, ValueError):  # a generator, or no seed
        return repr(seed)


_THREAD = refusing("the sampler starts a thread, which cannot be followed")  # torch's mode is of one


def _started(start: Callable[..., Any]) -> Callable[..., Any]:
    """Let only threads of tqdm start, because they draw nothing."""
    return lambda thread: (start if type(thread).__module__ == "tqdm._monitor" else _THREAD)(thread)


def _allowed_in_names(function: Callable[..., Any], refused: Callable[..., Any]) -> Callable[..., Any]:
    """Allow a function only for ``tempfile``, which names files and locks with it."""

    def drawn(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") != "tempfile":
            frame = frame.f_back  # type: ignore[assignment]
        return (refused if frame is None else function)(*args, **kwargs)

    return drawn


def _not_compiled(callback: Any) -> Any:
    if callable(callback):
        raise NotEnumerableError(
            "the sampler runs a function under torch.compile, which is not followed; audit it uncompiled"
        )
    return callback


def _float(*args: Any) -> Any:
    """Replaces ``float``: returns a random number unchanged."""
    number = args[0].item() if args and isinstance(args[0], RandomTensor) else args and args[0]
    return number if isinstance(number, (RandomTensor, UniformDraw)) else float(*args)


@contextmanager
def float_followed(names: dict[str, Any]) -> Iterator[None]:
    """Inside this context, ``float`` in a module returns random numbers unchanged."""
    names["float"] = _float
    try:
        yield
    finally:
        del names["float"]


def names_for_float(function: Any) -> dict[str, Any]:
    """The global names of a function's module if the module only calls ``float``.  Otherwise no names."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    if not isinstance(function, (FunctionType, MethodType)):  # an object that is called
        function = type(function).__call__
    names: dict[str, Any] = getattr(function, "__globals__", {})
    try:
        source = Path(names["__file__"]).read_bytes()
    except (KeyError, TypeError, OSError):
        return {}
    return {} if "float" in names or not _only_calls_float(source) else names


@cache
def _only_calls_float(source: bytes) -> bool:
    try:
        codes = [compile(source, "", "exec")]
    except (SyntaxError, ValueError):
        return False
    for code in codes:  # which grows
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    uses = chain.from_iterable(map(dis.get_instructions, codes))
    # The lowest bit says that a call follows.
    return all((use.arg or 0) % 2 for use in uses if (use.opname, use.argval) == ("LOAD_GLOBAL", "float"))


def _refusal(what: str) -> Callable[..., Any]:
    return refusing(f"the sampler draws from {what}, which cannot be followed")


@cache
def _refused_class(kind: type) -> type:
    """A class that has the instances of another class, but refuses to make new ones."""
    refuse = _refusal(f"numpy.random.{kind.__name__}, a separate generator")

    class Refused(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return refuse()

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, kind)

    return Refused(kind.__name__, (), {})
