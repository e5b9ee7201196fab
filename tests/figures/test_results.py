"""Tables that are built row by row, claims that are tried case by case, and their file."""

from figures.results import Check, Checks, Findings


def test_a_claim_holds_where_every_case_does() -> None:
    checks = Checks()
    for number in range(5):
        checks.expect("numbers are below 5", number < 5, f"{number}")
        checks.expect("numbers are below 1", number < 1, f"{number}")
    good, bad = checks
    assert (good.passed, good.evidence) == (True, "5 of 5")
    assert (bad.passed, bad.evidence) == (False, "4 of 5 failed: 1; 2; 3; ...")
    assert not Check("nothing was tried").passed
    assert Findings("", [], checks).failures == ["numbers are below 1: 4 of 5 failed: 1; 2; 3; ..."]
