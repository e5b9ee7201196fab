"""The operators of torch that read a random generator, where torch's dispatcher sees them.

A tag marks these operators, whatever function of Python, TorchScript or C++ calls them.
"""

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.exact_numbers import exact_number

_SEED_BYTES = 8
"""A state of a CPU generator begins with its seed, of which only the lower half is used."""


class TorchDraws(TorchDispatchMode):
    """Inside this mode, ``answer`` overwrites the results of random operators.

    The operator itself runs first, so that its generator advances and its errors are torch's own.  A mode of
    torch holds in one thread only.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Without this method torch imports its compiler to exclude this class, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _draws(func):
            return func(*args, **kwargs)
        state = state_of(kwargs.get("generator") or torch.default_generator)
        with torch._C.DisableTorchFunctionSubclass():
            drawn = self.draw(func, args, kwargs)
        if drawn.numel():  # of no numbers: the generator is where it was
            named = {
                argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)
            }
            self.answer(func, state, drawn, {**named, **kwargs})
        return drawn

    def draw(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        """Run the operator."""
        return func(*args, **kwargs)

    def answer(self, func: Any, state: Hashable, drawn: torch.Tensor, given: dict[str, Any]) -> None:
        """Overwrite the numbers that an operator has drawn.

        Args:
            func: the operator.
            state: the state of the generator before.  Draws in equal states have equal numbers.
            drawn: the result of the operator.
            given: its arguments by name.
        """
        raise NotImplementedError


@cache
def _draws(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


def name_of(func: Any) -> str:
    """The name of an operator without its overload, such as "uniform_"."""
    return str(func._schema.name).partition("::")[2]


def state_of(generator: torch.Generator) -> Hashable:
    """What a generator draws next.  Seeds that differ in their upper halves only are equal."""
    return generator.device, generator.get_state().numpy()[_SEED_BYTES:].tobytes()


def choose_cases(
    drawn: torch.Tensor,
    given: dict[str, Any],
    choose: Callable[[Sequence[Fraction]], int],
    refused: type[NotEnumerableError] = NotEnumerableError,
) -> None:
    """Overwrite the cases that ``multinomial`` or ``bernoulli`` has drawn, one after the other.

    ``bernoulli_`` ignores its tensor's entries, and gets no ``p`` if p is one half.

    Args:
        drawn: the result of the operator.
        given: its arguments by name.
        choose: weights -> the index of a case.
        refused: the error for draws without replacement from too few entries, and for draws that
            overwrite their probabilities.
    """
    if "num_samples" not in given:
        if given.get("out") is given["self"]:
            raise refused("torch.bernoulli overwrites its probabilities; give another tensor as out")
        prob = given.get("p", 0.5 if given["self"] is drawn else given["self"])
        probs = map(exact_number, torch.as_tensor(prob).expand(drawn.shape).reshape(-1).double().tolist())
        drawn.copy_(torch.tensor([choose([1 - prob, prob]) for prob in probs]).reshape(drawn.shape))
        return
    weights, rows = given["self"], drawn.reshape(-1, drawn.shape[-1])
    for row, chosen in zip(weights.reshape(-1, weights.shape[-1]).tolist(), rows, strict=True):
        left = list(map(exact_number, row))
        for place in range(len(chosen)):
            if not any(left):
                raise refused(
                    f"torch.multinomial draws {len(chosen)} entries without replacement where {place} have "
                    "weight, and does not say which of the others follow; draw fewer"
                )
            chosen[place] = case = choose(left)
            if not given.get("replacement", False):
                left[case] = Fraction(0)
