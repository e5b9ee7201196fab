"""The colours of the verifiers: one for each."""

from spectheory import verifiers
from spectheory.verification.curves import PALETTE, VERIFIER_STYLES


def test_looks_follow_the_registry() -> None:
    """Every verifier has its look; those of the published figures stay; labels are the papers'."""
    assert list(VERIFIER_STYLES) == list(verifiers)
    assert len({style.colour for style in VERIFIER_STYLES.values()}) == len(verifiers) < len(PALETTE)
    moved = "a verifier has another colour than in the published figures; put a new one last in the registry"
    looks = {name: (style.colour, style.label) for name, style in VERIFIER_STYLES.items()}
    assert looks["token"] == ("#0072B2", "token"), moved
    assert looks["multi_round"] == ("#986EFF", "multi-round"), moved
    assert looks["greedy_multipath"] == ("#82006B", "greedy multi-path"), moved
    assert looks["spectr_gbv"] == ("#A5CE6F", "SpecTr-GBV"), moved
