"""The lossless verifiers of the registry, which figures compare, and what they earn on enumerated pairs."""

from collections.abc import Iterable
from contextlib import suppress

from spectheory.exact.law import output_law
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.optima.bounds import SkewedDraft
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.path_selection.mixed_multipath import root_mixture
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.algorithms.position_by_position.positions import PositionByPosition
from spectheory.verification.algorithms.traversal import Traversal
from spectheory.verification.curves import VERIFIER_STYLES

OPTIMAL = "optimal_multipath"
"""Knows both models at every context and earns the optimum, which figures show by itself."""
OWN_ROUTES = (
    "token", "block", "greedy_multipath", "mixed_multipath", "scored_multipath", "naive_sampling",
)  # fmt: skip
"""Verifiers for which ``efficiencies`` has a closed form; some others have a method ``block_efficiency``."""
MOST_TUPLES = 512
"""Of drafts, for verifiers with neither nor a route (``exact.laws``): a law takes 20 ms, as all others do."""
ANY_NUMBER = 10**12
"""Of tuples, where the law is computed by a route."""


def lossless_verifiers(draft_length: int) -> list[str]:
    """Registered verifiers that are lossless and take i.i.d. drafts of so many tokens, without ``OPTIMAL``.

    Example:
        >>> set(lossless_verifiers(1)) - set(lossless_verifiers(2))
        {'kseq'}
    """
    return [
        name
        for name, verifier in verifiers.items()
        if verifier.lossless
        and "iid" in verifier.draft_processes
        and draft_length <= (verifier.max_draft_length or draft_length)
        and name != OPTIMAL
    ]


def needs_tuples(name: str) -> bool:
    """Whether block efficiency is known by a sum over all tuples of drafts only."""
    has_route = isinstance(verifiers[name], (PositionByPosition, Traversal))
    return not has_route and name not in OWN_ROUTES and not hasattr(verifiers[name], "block_efficiency")


def efficiencies(pair: ModelPair, num_drafts: int, max_tuples: int = 0) -> dict[str, float]:
    """Block efficiency of ``lossless_verifiers``.

    Args:
        pair: the models, in float64.
        num_drafts: K.
        max_tuples: verifiers that need a list of all tuples of drafts are left out if there are more; 0
            leaves all of them out.

    Example:
        >>> from spectheory import instances
        >>> found = efficiencies(instances.two_token(1).to_float(), 2)
        >>> round(found["otm"], 6), round(found["spectr"], 6), "conditional_transport" in found
        (1.888889, 1.81142, False)
    """
    draft = SkewedDraft.from_leaf_law(pair, pair.draft_path_probs(pair.draft_length))
    ranked = SkewedDraft.from_ranking(pair, num_drafts)
    share = float(root_mixture(pair.target[0], pair.draft[0], num_drafts)[0])
    mixed = SkewedDraft.mixture([share, 1 - share], [draft, ranked])
    scored = ScoredMultipath().skewed_draft(pair, num_drafts)
    laws = {"block": draft, "greedy_multipath": ranked, "mixed_multipath": mixed, "scored_multipath": scored}
    values = {name: float(law.block_efficiency(pair)) for name, law in laws.items()}
    values["token"] = float(output_law("token", pair).block_efficiency)
    # Naive sampling writes a path of the target, and keeps what of it was drafted.
    values["naive_sampling"] = 1.0 + sum(
        float((pair.target_path_probs(depth) * (1 - (1 - pair.draft_path_probs(depth)) ** num_drafts)).sum())
        for depth in range(1, pair.draft_length + 1)
    )
    names = lossless_verifiers(pair.draft_length)
    for name in names:
        if name in values:
            continue
        own = getattr(verifiers[name], "block_efficiency", None)
        if own is not None:
            values[name] = float(own(pair, num_drafts))
        elif max_tuples or not needs_tuples(name):
            with suppress(EnumerationTooLargeError):
                most = max_tuples if needs_tuples(name) else ANY_NUMBER
                values[name] = float(output_law(name, pair, num_drafts, max_tuples=most).block_efficiency)
    return {name: values[name] for name in names if name in values}


def labels(names: Iterable[str]) -> str:
    """The names of verifiers in a sentence."""
    *first, last = (VERIFIER_STYLES[name].label for name in names)
    return f"{', '.join(first)} and {last}" if first else last
