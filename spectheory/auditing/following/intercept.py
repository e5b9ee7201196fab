"""Make the random functions that a sampler calls take their numbers from the tape, or refuse them.

During one run ``intercepted`` answers torch's random operators (by a mode of torch's dispatcher), the random
functions of Python and numpy, and Triton's interpreter.  We refuse random operators whose law we do not know.
``Shipped`` finds draws by other names, as it makes runs again with ordinary numbers.

We identify a number by what its generator draws next.  So states that differ only elsewhere, such as in the
upper half of a seed, count as equal.  Two draws in one state get the same numbers, which is a finding.
"""

import random
import re
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from spectheory.auditing.following import names
from spectheory.auditing.following.kernel_draws import Draws, read_again
from spectheory.auditing.following.random_tensor import (
    RandomTensor,
    entries,
    follow,
    made_ordinary,
    plain,
    random_tensor,
    write,
)
from spectheory.auditing.following.replacements import (
    Replacement,
    not_compiled,
    only_one_at_a_time,
    refusing,
    replaced,
)
from spectheory.auditing.following.torch_draws import TorchDraws, choose_cases, name_of
from spectheory.auditing.following.torch_functions import DRAWS, REAL
from spectheory.auditing.following.triton_kernels import kernels_followed
from spectheory.auditing.tape.atoms import uniform_number, whole_number
from spectheory.auditing.tape.coins import CoinGenerator
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
        reads: the fields of requests that not every sampler knows, and that this one reads.
        refused: kinds of inputs that the sampler refuses, in words.
        runs, repeated: the number of runs, and the number of runs that we made again.
        pairs_of_calls: the number of runs of two consecutive calls.
    """

    primitives: set[str] = field(default_factory=set)
    findings: set[tuple[str, str]] = field(default_factory=set)
    undefined: set[str] = field(default_factory=set)
    raised: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    runs: int = 0
    repeated: int = 0
    pairs_of_calls: int = 0


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
        try:
            with ExitStack() as stack:
                stack.enter_context(unswallowed())
                stack.enter_context(replaced(_replacements(tape, journal)))
                stack.enter_context(kernels_followed(Draws(tape, journal.primitives, journal.findings)))
                stack.enter_context(not_compiled())
                stack.enter_context(_unfilled_memory_is_nan())
                answers = stack.enter_context(_Answers(tape, journal))
                yield
            answers.check_state()
            if torch.default_generator.initial_seed() != seed:
                journal.findings.add(("contract", "it gives torch's global generator a seed"))
        except NotEnumerableError as error:
            tape.numbers.clear()  # the run is not made again, and Triton's interpreter keeps its tape
            raise type(error)(f"{error}{_place(error)}") from error
        finally:
            made_ordinary()
            names.begin()
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


def _place(error: BaseException | None) -> str:
    """The user's line in the traceback of an error, or of what it is raised from, as below TorchScript."""
    while error is not None:
        place = users_line(error)
        if place:
            return place
        error = error.__cause__
    return ""


class _Answers(TorchDraws):
    """Names the numbers that torch's operators draw, and refuses operators whose law is not known."""

    def __init__(self, tape: Tape, journal: Journal) -> None:
        super().__init__()
        self.tape, self.journal = tape, journal
        self._states = {_state_of_torch()}
        """The states of the global generator that we have seen; a fork sets it back to one of them."""
        self.read: dict[Hashable, tuple[int, Any, Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.is_pinned.default:  # where the copies to a device are made from
            return True
        if kwargs and kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if func is torch.ops.aten.detach.default:  # torch does this to every result of a factory
            return follow(func(*map(plain, args)))
        if any(type(arg) is RandomTensor for arg in args) and name_of(func) not in DRAWS:
            raise NotEnumerableError(
                f"the sampler runs TorchScript, which is not followed, or other code that applies {func} to "
                "random numbers below Python"
            )
        return super().__torch_dispatch__(func, types, args, kwargs)

    def draw(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        self.check_state()
        try:
            drawn: torch.Tensor = func(*args, **kwargs)
        except RuntimeError as error:
            raise UndefinedDrawError(f"torch.{name_of(func)}: {error}") from error
        self._states.add(_state_of_torch())
        return drawn

    def answer(self, func: Any, state: Hashable, drawn: torch.Tensor, given: dict[str, Any]) -> None:
        name = name_of(func)
        if name not in _ANSWERS:
            raise NotEnumerableError(f"the sampler draws from {func}, whose law is not known here")
        kind = name, tuple(drawn.shape), drawn.dtype
        if state in self.read:
            call, read, numbers = self.read[state]
            is_used = numbers is None or any(number.is_used for number in numbers.flat)
            self.journal.findings.update(read_again(name, read[0], self.tape.call - call, is_used))
            if read != kind or numbers is None:
                raise NotEnumerableError(f"{name} reads random numbers again in another form")
        else:
            numbers = _ANSWERS[name](self.tape, drawn, given)
            self.read[state] = self.tape.call, kind, numbers
            if self.tape.again is None:
                self.journal.primitives.add(_described(name, numbers))
        if numbers is not None:
            write(drawn, numbers)

    def check_state(self) -> None:
        """Refuse a run that has drawn from the global generator in a thread."""
        is_known = _state_of_torch() in self._states
        if not is_known and torch.default_generator.initial_seed() == GLOBAL_SEED + self.tape.seed:
            raise HiddenRandomnessError(
                "the sampler draws from torch's global generator where we do not see it"
            )


def _state_of_torch() -> bytes:
    """The state of torch's global generator."""
    return torch.get_rng_state().numpy().tobytes()


def _described(name: str, numbers: np.ndarray | None) -> str:
    if numbers is None:
        return f"{name}: with probabilities proportional to the floats it is given"
    first = numbers.flat[0]
    law = "exponential, as real numbers" if isinstance(first, ExponentialDraw) else first.sources[0].grid.name
    return f"{name}: {law}"


def filled(shape: Any, make: Callable[[], Any]) -> np.ndarray:
    """An object array with one new object per entry."""
    numbers = np.empty(tuple(shape), dtype=object)
    for place in np.ndindex(numbers.shape):
        numbers[place] = make()
    return numbers


def _numbers(tape: Tape, drawn: torch.Tensor, make: Callable[[], Any]) -> np.ndarray:
    return filled(drawn.shape, lambda: tape.number(make))


def _uniform(tape: Tape, drawn: torch.Tensor, given: dict[str, Any]) -> np.ndarray:
    """Uniform numbers.  For ``uniform_(from, to)`` torch computes u (to - from) + from."""
    low, high = given.get("from", 0), given.get("to", 1)
    numbers = _numbers(tape, drawn, lambda: uniform_number(tape, drawn.dtype))
    if (low, high) == (0, 1):
        return numbers
    return entries(random_tensor(numbers, drawn.dtype) * (high - low) + low)


def _exponential(tape: Tape, drawn: torch.Tensor, given: dict[str, Any]) -> np.ndarray:
    if drawn.dtype not in REAL:
        raise NotEnumerableError(
            f"the sampler draws exponential random numbers of {drawn.dtype}, which has too few values for a "
            "race of real numbers; draw them in float32"
        )
    rate = exact_number(given.get("lambd", 1.0))
    return _numbers(tape, drawn, lambda: ExponentialDraw(Exponential(tape), rate))


def _cases(tape: Tape, drawn: torch.Tensor, given: dict[str, Any]) -> None:
    choose_cases(drawn, given, tape.draw_among)


def _whole_numbers(tape: Tape, drawn: torch.Tensor, given: dict[str, Any]) -> np.ndarray | None:
    low, high = given.get("low", 0), given["high"]
    if high - low > MAX_BRANCHES:
        return _numbers(tape, drawn, lambda: whole_number(tape, low, high))
    values = [low + tape.draw([Fraction(1, high - low)] * (high - low)) for _ in range(drawn.numel())]
    drawn.copy_(torch.tensor(values).reshape(drawn.shape))
    return None


_ANSWERS: dict[str, Callable[[Tape, torch.Tensor, dict[str, Any]], np.ndarray | None]] = {
    **dict.fromkeys(("rand", "rand_like", "uniform_"), _uniform),
    **dict.fromkeys(("bernoulli", "bernoulli_", "multinomial"), _cases),
    **dict.fromkeys(("randint", "randint_like"), _whole_numbers),
    "exponential_": _exponential,
}
"""Operator -> its numbers.  ``None`` if the answer has written ordinary ones."""


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


_GLOBAL_FUNCTIONS = [(np.random, name) for name in ("seed", "ranf", "sample")] + [
    (module, name)
    for module, owner in ((random, random.random.__self__), (np.random, np.random.random.__self__))  # type: ignore[attr-defined]
    for name, function in vars(module).items()
    if getattr(function, "__self__", None) is owner and not re.search("state|bit_generator|^_", name)
]
"""The functions of the global generators."""
_FOLLOWED = [(random, "random"), (random, "uniform"), (random, "choices")]
