"""Make the random functions that a sampler calls take their numbers from the tape, or refuse them.

During one run ``intercepted`` replaces torch's random functions (by a function mode), the random functions of
Python and numpy, and Triton's interpreter.  The tag ``nondeterministic_seeded`` marks every other torch
operator that reads a generator; we refuse these.  ``Shipped`` finds draws by other names, as it makes runs
again with ordinary numbers.

We identify a number by what its generator draws next.  So states that differ only elsewhere, such as in the
upper half of a seed, count as equal.  Two draws in one state get the same numbers, which is a finding.
"""

import dis
import inspect
import operator
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import chain, takewhile
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from spectheory.auditing.following.kernel_draws import Draws, read_again
from spectheory.auditing.following.random_tensor import (
    REAL,
    RandomTensor,
    become_random,
    changed_in_place,
    made_ordinary,
    random_tensor,
    unwrapped,
)
from spectheory.auditing.following.replacements import Replacement, only_one_at_a_time, refusing, replaced
from spectheory.auditing.following.triton_kernels import followed
from spectheory.auditing.tape.atoms import uniform_number, whole_number
from spectheory.auditing.tape.coins import CoinGenerator, UniformDraw
from spectheory.auditing.tape.decisions import HiddenRandomnessError, NotEnumerableError, Tape, unswallowed
from spectheory.auditing.tape.races import Exponential, ExponentialDraw, UndefinedDrawError
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


@contextmanager
def intercepted(tape: Tape, journal: Journal) -> Iterator[None]:
    """Inside this context, all random numbers come from the tape.

    Args:
        tape: the tape of the run.
        journal: receives the observations.

    Raises:
        NotEnumerableError: the code uses an unknown random function.
        HiddenRandomnessError: the code drew a number from Python's or numpy's generator by another name.
        InvalidInputError: another thread has replaced the random functions.
    """
    with only_one_at_a_time():
        before, torch_state = _states(), torch.get_rng_state()
        seed = GLOBAL_SEED + tape.seed
        torch.default_generator.manual_seed(seed)
        sentinel = _Sentinel()
        try:
            with ExitStack() as stack:
                stack.enter_context(unswallowed())
                stack.enter_context(replaced(_replacements(tape, journal)))
                stack.enter_context(followed(Draws(tape, journal.primitives, journal.findings)))
                stack.enter_context(float_followed(journal.names))
                stack.enter_context(_unfilled_memory_is_nan())
                if tape.is_watched:
                    stack.enter_context(sentinel)
                answers = stack.enter_context(_Answers(tape, journal, sentinel))
                yield
            answers.check_state()
            if torch.default_generator.initial_seed() != seed:
                journal.findings.add(("contract", "it gives torch's global generator a seed"))
        except NotEnumerableError as error:
            tape.numbers.clear()  # the run is not made again, and Triton's interpreter keeps its tape
            raise type(error)(f"{error}{users_line(error)}") from error
        finally:
            made_ordinary()
            torch.set_rng_state(torch_state)
        if _states() != before:
            raise HiddenRandomnessError(
                "the sampler draws from Python's or numpy's global generator by a name that was imported on "
                "its own (`from random import ..`)"
            )


@contextmanager
def _unfilled_memory_is_nan() -> Iterator[None]:
    """Inside this context torch fills new memory, so that code that reads it is wrong in every run."""
    set_mode: Any = torch._C._set_deterministic_algorithms  # the public function imports torch's compiler
    before = torch.are_deterministic_algorithms_enabled()
    warns_only = torch.is_deterministic_algorithms_warn_only_enabled()
    set_mode(True, warn_only=True)
    try:
        yield
    finally:
        set_mode(before, warn_only=warns_only)


def _states() -> list[Any]:
    """The states of the global generators of Python and numpy."""
    _, keys, *rest = np.random.get_state()  # noqa: NPY002
    return [random.getstate(), np.asarray(keys).tobytes(), rest]


def _next_numbers(generator: torch.Generator) -> tuple[int, ...]:
    """The numbers that a generator draws next.  We draw them from a copy."""
    copy = torch.Generator(generator.device)
    copy.set_state(generator.get_state())
    with _disable_current_modes():
        return tuple(torch.empty(8, dtype=torch.int64, device=copy.device).random_(generator=copy).tolist())


class _Sentinel(TorchDispatchMode):
    """Refuses every torch operator that reads a random generator, except those that ``_Answers`` runs.

    It takes as long as the sampler, so only some runs have it.
    """

    is_open = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Without this method torch imports its compiler to exclude this class, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _draws(func) and not self.is_open:
            raise NotEnumerableError(f"the sampler draws from {func}, whose law is not known here")
        return func(*args, **(kwargs or {}))


@cache
def _draws(func: Any) -> bool:
    """Whether an operator of torch reads a random generator."""
    return torch.Tag.nondeterministic_seeded in func.tags


class _Answers(TorchFunctionMode):
    def __init__(self, tape: Tape, journal: Journal, sentinel: _Sentinel) -> None:
        super().__init__()
        self.tape, self.journal, self.sentinel = tape, journal, sentinel
        self._state = torch.get_rng_state()
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
            if name == "__set__" and any(isinstance(arg, RandomTensor) for arg in args):
                raise NotEnumerableError("the sampler puts random numbers into the memory of another tensor")
            result = func(*args, **kwargs)
            if name.endswith("_") and args:
                changed_in_place(args[0])
            return result
        if kwargs.get("out") is not None:
            raise NotEnumerableError(f"{name} writes random numbers to a tensor by out; take its result")
        generator = kwargs.get("generator") or torch.default_generator
        if generator is torch.default_generator:
            self.check_state()
        state = _next_numbers(generator)
        drawn = self._really_drawn(func, args, kwargs)
        self._state = torch.get_rng_state()
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

    def check_state(self) -> None:
        """Refuse a run that has drawn from the global generator by another operator, or in a thread."""
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            is_same = torch.equal(torch.get_rng_state(), self._state)
        if not is_same and torch.default_generator.initial_seed() == GLOBAL_SEED + self.tape.seed:
            raise HiddenRandomnessError(
                "the sampler draws from torch's global generator where we do not see it"
            )

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
        if seed is not None and repr(seed) in seeds:
            calls = tape.call - seeds[repr(seed)]
            journal.findings.update(read_again("numpy.random.default_rng", "it", calls, is_used=True))
            raise NotEnumerableError("numpy.random.default_rng is given a seed for the second time")
        seeds[repr(seed)] = tape.call
        return coins

    yield random, "random", python_uniform
    yield random, "uniform", lambda a, b: a + (b - a) * python_uniform()
    yield random, "choices", coins.choices
    yield np.random, "default_rng", numpy_generator
    for module, name in _GLOBAL_FUNCTIONS:
        if (module, name) not in _FOLLOWED:
            what = f"the sampler draws from {module.__name__}.{name}, which cannot be followed"
            yield module, name, refusing(what)
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    if hasattr(compiler, "_callback_from_stance"):
        yield compiler, "_callback_from_stance", _not_compiled


_GLOBAL_FUNCTIONS = [(np.random, name) for name in ("seed", "ranf", "sample")] + [
    (module, name)
    for module, owner in ((random, random.random.__self__), (np.random, np.random.random.__self__))  # type: ignore[attr-defined]
    for name, function in vars(module).items()
    if getattr(function, "__self__", None) is owner and not re.search("state|bit_generator|^_", name)
]
"""The functions of the global generators."""
_FOLLOWED = [(random, "random"), (random, "uniform"), (random, "choices")]


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
