"""Processors of rows, as sampling parameters of engines declare them: temperature, cuts, penalties, grammars.

A processor f takes a text and the model's row after this text, and returns the row from which the engine
draws.  So the target of a request has the rows f(prompt + a, p(. | a)) at all texts a.  A sampler with these
parameters is lossless if its output has the law of this target (``processed``).

Logits are the logarithms of the rows, so a number that an engine adds to a logit multiplies a weight.
Parameters that are added are therefore given as factors: the factor e^-a for a penalty of a.

An exact row, of Fractions, gives an exact row.  This needs exact parameters: integers, ``Fraction`` or
strings such as "1/2".  Only the temperature has values at which the result is not rational.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpz

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import is_exact
from spectheory.foundation.validation import check_count, unknown_name
from spectheory.pairs.contexts import Context
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_entry, parse_parameter


@dataclass(frozen=True)
class Processor:
    """A function (text, row) -> row, with a name for reports.

    Attributes:
        name: what it does, such as "temperature 1/2".
        weights: (text, row) -> weights, which need not sum to 1.
        settings: name -> number, where the processor is parsed from a text (``parse_processors``).

    Example:
        >>> halved = Processor("the last token halved", lambda text, row: row * [1, 1, Fraction(1, 2)])
        >>> print(halved((), np.array([Fraction(1, 3)] * 3)))
        [Fraction(2, 5) Fraction(2, 5) Fraction(1, 5)]
    """

    name: str
    weights: Callable[[Context, np.ndarray], np.ndarray]
    settings: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, text: Sequence[int], row: np.ndarray) -> np.ndarray:
        """Process one row.

        Args:
            text: all tokens before the row's token: the prompt, and the tokens after it.
            row: Fractions or float64, [V].

        Raises:
            InvalidInputError: no token is left with a positive weight.
        """
        weights = self.weights(tuple(text), row)
        total = weights.sum()
        if not 0 < total < math.inf:
            raise InvalidInputError(f"{self.name} leaves no token after the text {tuple(text)}")
        return weights / total


def chain(*processors: Processor) -> Processor:
    """Apply processors one after the other; engines differ in their order.

    Example:
        >>> print(chain(temperature("1/2"), top_k(2))((), np.array([Fraction(n, 6) for n in (3, 2, 1)])))
        [Fraction(9, 13) Fraction(4, 13) Fraction(0, 1)]
    """

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        for processor in processors:
            row = processor(text, row)
        return row

    return Processor(", ".join(each.name for each in processors) or "no processor", weights)


def temperature(value: Any) -> Processor:
    """Raise probabilities to the power 1/T: softmax(logits / T).  T = 0 keeps the first likeliest token.

    An exact row needs 1/T = a/b with roots of order b that are rational.  So T = 1, 1/2, 1/3, .. are exact on
    every row, and T = 2 on rows whose ratios are squares.

    Raises:
        InvalidInputError: (when called) the exact row has no rational result.

    Example:
        >>> row = np.array([Fraction(1, 5), Fraction(4, 5)])
        >>> print(temperature("1/2")((), row), temperature(2)((), row), temperature(0)((), row))
        [Fraction(1, 17) Fraction(16, 17)] [Fraction(1, 3) Fraction(2, 3)] [Fraction(0, 1) Fraction(1, 1)]
    """
    parsed = parse_parameter("temperature", value, 0)

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        number = _of_row(parsed, row)
        if not number:
            return _kept(row, np.arange(len(row)) == int(np.argmax(row)))
        ratios = row / row.max()
        if not is_exact(row):
            return ratios ** (1 / number)
        inverse = 1 / Fraction(number)
        return np.array([_root(ratio, inverse.denominator) ** inverse.numerator for ratio in ratios], object)

    return Processor(f"temperature {parsed}", weights)


def _root(ratio: Fraction, order: int) -> Fraction:
    """The rational root of a rational number.

    Raises:
        InvalidInputError: the root is not rational.
    """
    root = Fraction(*(int(fmpz(part).root(order)) for part in (ratio.numerator, ratio.denominator)))
    if root**order != ratio:
        raise InvalidInputError(
            f"this temperature needs the root of order {order} of {ratio}, which is not rational; use a "
            "temperature of 1/n, or a row of floats"
        )
    return root


def top_k(count: int) -> Processor:
    """Keep the k most likely tokens, and all tokens that tie with the k-th, as transformers and vLLM do.

    Example:
        >>> print(top_k(1)((), np.array([0.4, 0.2, 0.4])))
        [0.5 0.  0.5]
    """
    check_count("top_k", count)

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        return _kept(row, row >= np.sort(row)[-min(count, len(row))])

    return Processor(f"top-k {count}", weights)


def top_p(mass: Any) -> Processor:
    """Keep the fewest most likely tokens with a mass of at least p.  Of tokens that tie, keep the first.

    Example:
        >>> print(top_p("2/3")((), np.array([Fraction(n, 6) for n in (1, 2, 3)])))
        [Fraction(0, 1) Fraction(2, 5) Fraction(3, 5)]
    """
    parsed = parse_parameter("top_p", mass, 0, 1)

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        order = np.argsort(-row, kind="stable")
        before = np.concatenate([[0], np.cumsum(row[order])[:-1]])
        kept = np.zeros(len(row), dtype=bool)
        kept[order] = before < _of_row(parsed, row)
        kept[order[0]] = True
        return _kept(row, kept)

    return Processor(f"top-p {parsed}", weights)


def min_p(share: Any) -> Processor:
    """Keep the tokens with a probability of at least this share of the largest probability.

    Example:
        >>> print(min_p("1/2")((), np.array([Fraction(n, 6) for n in (1, 2, 3)])))
        [Fraction(0, 1) Fraction(2, 5) Fraction(3, 5)]
    """
    parsed = parse_parameter("min_p", share, 0, 1)
    return Processor(f"min-p {parsed}", lambda text, row: _kept(row, row >= _of_row(parsed, row) * row.max()))


def presence_penalty(factor: Any) -> Processor:
    """Multiply the weights of all tokens of the text by a factor, e^-a for a presence penalty of a.

    Example:
        >>> print(presence_penalty("1/2")((0, 0), np.array([Fraction(1, 2)] * 2)))
        [Fraction(1, 3) Fraction(2, 3)]
    """
    parsed = parse_parameter("presence_penalty", factor, 0)

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        return np.where(_counts(text, row) > 0, row * _of_row(parsed, row), row)

    return Processor(f"presence penalty {parsed}", weights)


def frequency_penalty(factor: Any) -> Processor:
    """Multiply the weight of a token by a factor for each time that it is in the text.

    Example:
        >>> print(frequency_penalty("1/2")((0, 0), np.array([Fraction(1, 2)] * 2)))
        [Fraction(1, 5) Fraction(4, 5)]
    """
    parsed = parse_parameter("frequency_penalty", factor, 0)

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        number = _of_row(parsed, row)
        return row * np.array([number ** int(count) for count in _counts(text, row)], row.dtype)

    return Processor(f"frequency penalty {parsed}", weights)


def repetition_penalty(exponent: int) -> Processor:
    """Raise the probabilities of all tokens of the text to a power.

    Engines multiply negative logits of these tokens by a factor, and divide positive logits by it (CTRL,
    arXiv:1909.05858, section 4.1).  Our logits are logarithms of probabilities and never positive, so the
    factor is an exponent.  We take integers only, so that the result is rational.

    Example:
        >>> print(repetition_penalty(2)((0,), np.array([Fraction(1, 2)] * 2)))
        [Fraction(1, 3) Fraction(2, 3)]
    """
    check_count("repetition_penalty", exponent)
    return Processor(
        f"repetition penalty {exponent}",
        lambda text, row: np.where(_counts(text, row) > 0, row**exponent, row),
    )


def bias(factors: Mapping[int, Any]) -> Processor:
    """Multiply the weights of given tokens by factors: e^b for a bias of b, and 0 for a forbidden token.

    Example:
        >>> print(bias({1: 3})((), np.array([Fraction(1, 2)] * 2)))
        [Fraction(1, 4) Fraction(3, 4)]
    """
    parsed = {token: parse_parameter("bias", factor, 0) for token, factor in factors.items()}

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        changed = row.copy()
        for token, factor in parsed.items():
            changed[token] = row[token] * _of_row(factor, row)
        return changed

    words = ", ".join(f"{token}: {factor}" for token, factor in parsed.items())
    return Processor(f"bias {{{words}}}", weights)


def grammar(transitions: Mapping[Any, Mapping[int, Any]], start: Any) -> Processor:
    """Keep the tokens that a deterministic automaton allows after the text.

    After a text that the automaton does not allow, the row is unchanged: no output reaches this text.

    Args:
        transitions: state -> token -> next state.  A state that is missing allows no token.
        start: the state before the text.

    Example:
        >>> no_two_zeros = grammar({"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}, "any")
        >>> fair = np.array([Fraction(1, 2)] * 2)
        >>> print(no_two_zeros((1, 0), fair), no_two_zeros((0, 0), fair))
        [Fraction(0, 1) Fraction(1, 1)] [Fraction(1, 2) Fraction(1, 2)]
    """

    def weights(text: Context, row: np.ndarray) -> np.ndarray:
        state = start
        for token in text:
            if token not in transitions.get(state, {}):
                return row
            state = transitions[state][token]
        allowed = transitions.get(state, {})
        return _kept(row, np.array([token in allowed for token in range(len(row))]))

    return Processor("grammar", weights)


ROUNDING = 2.0**-18
"""Relative changes of probabilities that count as rounding: 64 times the rounding of float32."""
_BY_NAME: Mapping[str, Callable[[Any], Processor]] = {
    "temperature": temperature,
    "top_k": lambda text: top_k(_integer("top_k", text)),
    "top_p": top_p,
    "min_p": min_p,
    "presence_penalty": presence_penalty,
    "frequency_penalty": frequency_penalty,
    "repetition_penalty": lambda text: repetition_penalty(_integer("repetition_penalty", text)),
}


def parse_processors(text: str) -> Processor:
    """Parse processors as a command line has them, in the order of their use.

    Raises:
        InvalidInputError: a part is not ``name=number``, or no processor has this name.

    Example:
        >>> parse_processors("temperature=1/2,top_k=2").name
        'temperature 1/2, top-k 2'
    """
    found, settings = [], {}
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        if name not in _BY_NAME:
            raise unknown_name("processor", name, _BY_NAME)
        found.append(_BY_NAME[name](number))
        settings[name] = float(parse_entry(number))
    return replace(chain(*found), settings=settings)


def is_on_a_boundary(pair: ModelPair, processor: Processor, prompt: Sequence[int] = ()) -> bool:
    """Whether rounding of some target row changes which tokens a processor keeps.

    Programs differ there without a mistake: at ties, and where a probability is exactly at a cut.

    Example:
        >>> from spectheory import instances
        >>> [is_on_a_boundary(instances.two_token(1), min_p(share)) for share in ("1/2", "2/5")]
        [True, False]
    """
    sizes = np.array([1.0, -1.0, 0.6, -0.3]) * ROUNDING
    for depth, level in enumerate(pair.target):
        for index, row in enumerate(level):
            text = (*prompt, *pair.context(depth, index))
            kept = processor(text, row) > 0
            for shift in range(len(sizes)):
                moved = row.astype(float) * (1 + np.resize(np.roll(sizes, shift), len(row)))
                if not np.array_equal(processor(text, moved / moved.sum()) > 0, kept):
                    return True
    return False


def processed(
    pair: ModelPair,
    target: Processor | None = None,
    draft: Processor | None = None,
    prompt: Sequence[int] = (),
) -> ModelPair:
    """Process the rows of a pair at all contexts.

    Args:
        pair: the raw models.
        target, draft: the processors of both models.  ``None`` leaves a model unchanged.
        prompt: the tokens before the pair's contexts, for penalties and grammars.

    Example:
        >>> from spectheory import instances
        >>> pair = processed(instances.two_token(1), target=presence_penalty("1/2"))
        >>> print(pair.target[0][0], pair.target[1][0])
        [Fraction(1, 3) Fraction(2, 3)] [Fraction(1, 5) Fraction(4, 5)]
    """

    def processed_level(processor: Processor, depth: int, level: np.ndarray) -> np.ndarray:
        texts = ((*prompt, *pair.context(depth, number)) for number in range(len(level)))
        return np.stack([processor(text, row) for text, row in zip(texts, level, strict=True)])

    target_levels, draft_levels = (
        tuple(processed_level(processor, *entry) for entry in enumerate(levels)) if processor else levels
        for processor, levels in ((target, pair.target), (draft, pair.draft))
    )
    return ModelPair(target_levels, draft_levels, pair.vocab)


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"{name} must be an integer, got {text!r}") from None


def _of_row(number: Any, row: np.ndarray) -> Any:
    """The parameter in the arithmetic of a row.

    Raises:
        InvalidInputError: the row is exact and the parameter is a float.
    """
    if not is_exact(row):
        return float(number)
    if isinstance(number, float):
        raise InvalidInputError(f'an exact row needs an exact parameter; write {number} as a string: "1/2"')
    return Fraction(number)


def _kept(row: np.ndarray, kept: np.ndarray) -> np.ndarray:
    zero: Any = Fraction(0) if is_exact(row) else 0.0
    return np.where(kept.astype(bool), row, zero)


def _counts(text: Context, row: np.ndarray) -> np.ndarray:
    return np.bincount(np.array(text, dtype=np.int64), minlength=len(row))
