"""χ² tests of samplers: the verdict of a test, the samples that it needs, and the defect that it can find."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from spectheory.auditing.subjects.sampler_verifiers import Sampler, SamplerVerifier
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.validation import check_confidence, check_count
from spectheory.pairs.contexts import context_number, prefix_numbers, rows_along
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair, check_pair
from spectheory.verification.user import users_code

SIGNIFICANCE = 0.01
POWER = 0.99
"""The significance and the power of the test that an audit states the number of samples for."""


@dataclass(frozen=True)
class SampledVerdict:
    """The verdict of a χ² test on a sampler that cannot be enumerated.

    Attributes:
        p_value: of the observed first L+1 tokens under the target's law.
        is_rejected: whether the p-value is below the significance: the sampler is not lossless.
        statistic, degrees_of_freedom: of the test.
        detectable: a total variation that this test finds with probability ``power``, whatever its shape; a
            smaller defect may go unnoticed.
        samples, significance, power: the settings of the test.
    """

    p_value: float
    is_rejected: bool
    statistic: float
    degrees_of_freedom: int
    detectable: float
    samples: int
    significance: float
    power: float

    def __bool__(self) -> bool:
        """False: a test can say that a sampler is not lossless, never that it is; ask ``is_rejected``."""
        return False


def sampled_verdict(
    sampler: Sampler,
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    *,
    samples: int = 100_000,
    seed: int = 0,
    significance: float = 1e-3,
    power: float = 0.99,
) -> SampledVerdict:
    """Test a sampler's output, completed with the target, against the target's law.

    For samplers whose randomness cannot be enumerated.  The test is not a certificate.  It can reject, and if
    it does not, it states how large a defect it would have found.

    Args:
        sampler: as in ``from_sampler``; it is given a ``numpy.random.Generator``.
        pair: the models; their float64 rows are used.
        drafts: K, for paths drafted i.i.d., or another draft process.
        samples: the number of outputs drawn.
        seed: of the drafts, the completions and the generator.
        significance: of the test.
        power: the probability of finding a defect of size ``detectable``.

    Raises:
        InvalidInputError: a path of the target has fewer than 5 expected samples.
        InvalidOutcomeError: the sampler failed or returned something other than tokens.

    Example:
        >>> from spectheory import instances
        >>> def first_draft(paths, target_rows, draft_rows, generator):
        ...     return [*paths[0], 0]
        >>> sampled_verdict(first_draft, instances.two_token(1), samples=1_000).is_rejected
        True
    """
    from scipy.stats import chi2

    samples, significance, power = (
        check_count("samples", samples),
        check_confidence(significance, "significance"),
        check_confidence(power, "power"),
    )
    seed = check_count("seed", seed, at_least=0)
    if power <= significance:
        raise InvalidInputError(f"power must be above the significance {significance}, got {power}")
    pair, process = check_pair(pair).to_float(), draft_process(drafts)
    process.check(pair)
    if process.count_tuples(pair) > 1_000_000:
        raise EnumerationTooLargeError(
            "more than 10^6 tuples of drafts; use fewer tokens, drafts or a shorter path"
        )
    rng = np.random.default_rng(seed)
    tuples = next(process.tuples(pair, 1_000_000))
    if (tuples.leaves < 0).any():
        raise InvalidInputError(
            f"{process.name!r} drafts have paths that end early; a sampler is not given them"
        )
    drafters = [process.drafter(pair, path).draft for path in range(process.num_drafts)]
    drawn = rng.choice(len(tuples.leaves), samples, p=tuples.probs / tuples.probs.sum())
    box = SamplerVerifier(sampler, getattr(sampler, "__name__", "sampler"), 1)
    size, length = pair.vocab_size, pair.draft_length
    counts = np.zeros(size ** (length + 1))
    for leaves in tuples.leaves[drawn]:
        paths = np.array([pair.context(length, int(leaf)) for leaf in leaves])
        prefixes = prefix_numbers(paths, size)
        target = rows_along(pair.target, prefixes)
        draft = np.stack([rows_along(levels, path) for levels, path in zip(drafters, prefixes, strict=True)])
        with users_code(f"sampler {box.name!r}", may_refuse=True):
            returned = sampler(paths, target, draft, rng)
        tokens = box.tokens(returned)
        box.credited_path(paths, tokens, size)
        while len(tokens) <= length:
            tokens = (
                *tokens,
                int(rng.choice(size, p=pair.target[len(tokens)][context_number(tokens, size)])),
            )
        counts[context_number(tokens, size)] += 1
    probs = pair.target_path_probs(length + 1)
    possible = probs > 0
    if samples * probs[possible].min() < 5:
        raise InvalidInputError(
            f"{samples} samples are too few for a χ² test: the rarest of {possible.sum()} outcomes has "
            f"probability {probs[possible].min():.3g}; draw at least {int(5 / probs[possible].min()) + 1}"
        )
    expected = samples * probs[possible]
    freedom = int(possible.sum()) - 1
    impossible = counts[~possible].sum() > 0
    statistic = float("inf") if impossible else float(((counts[possible] - expected) ** 2 / expected).sum())
    p_value = 0.0 if impossible else float(chi2.sf(statistic, freedom)) if freedom else 1.0
    # A defect of total variation d has a noncentrality of at least 4 samples d², Σ (Δ_i)²/p_i >= (Σ |Δ_i|)².
    needed = noncentrality(freedom, significance, power)
    return SampledVerdict(
        p_value,
        p_value < significance,
        statistic,
        freedom,
        math.sqrt(needed / (4 * samples)),
        samples,
        significance,
        power,
    )


def noncentrality(freedom: int, significance: float, power: float) -> float:
    """The noncentrality at which a χ² test has the given power."""
    from scipy.special import chdtri, chndtr

    freedom = max(freedom, 1)
    threshold, low, high = chdtri(freedom, significance), 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if 1 - chndtr(threshold, freedom, middle) >= power else (middle, high)
    return high


def total_variation_of_cells(found: np.ndarray, wanted: np.ndarray, undefined: Fraction) -> Fraction:
    """The total variation of two laws; an undefined output is one more outcome of the first."""
    distance: Fraction = (abs(found - wanted).sum() + undefined) / 2
    return distance


def samples_needed(found: np.ndarray, wanted: np.ndarray, undefined: Fraction) -> int | None:
    """The number of samples that a χ² test needs to find the difference; ``None`` where there is none.

    With d the total variation of one sample, the law of n samples is within 1 - (1 - d)^n of the target's.
    The power of any test exceeds its level by at most as much.  The result is never below that bound, because
    the χ² approximation promises too much where cells are nearly empty.
    """
    possible = wanted > 0
    impossible = float(found[~possible].sum() + undefined)
    distance = float(((found - wanted)[possible] ** 2 / wanted[possible]).sum())
    needed = []
    if distance > 0:
        needed.append(noncentrality(int(possible.sum()) - 1, SIGNIFICANCE, POWER) / distance)
    if impossible > 0:
        needed.append(math.log1p(-POWER) / math.log1p(-impossible) if impossible < 1 else 1.0)
    if not needed:
        return None
    variation = float(total_variation_of_cells(found, wanted, undefined))
    least = math.log1p(SIGNIFICANCE - POWER) / math.log1p(-variation) if variation < 1 else 1.0
    return math.ceil(max(min(needed), least))
