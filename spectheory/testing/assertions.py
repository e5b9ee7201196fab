"""assert_lossless: the standard suite as one line of a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spectheory.suite import SuiteCase, SuiteCertificate, certify_suite


def assert_lossless(verifier: str | Any, suite: Iterable[SuiteCase] | None = None) -> SuiteCertificate:
    """Fail unless the verifier is lossless on every pair of a suite.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        suite: the cases; by default the standard suite, see ``spectheory.suite``.

    Returns:
        The certificate of the suite.

    Raises:
        AssertionError: it is not; the text names the smallest pair, the prefix and the drafts.
        InvalidInputError: it is no verifier, or does not return conditional laws.

    Example:
        >>> from spectheory.defects import defects
        >>> try:
        ...     assert_lossless(defects["target_correction"])
        ... except AssertionError as error:
        ...     print(str(error)[:66])
        target_correction is not lossless. On bernoulli_one_half-L1, 1 dra
    """
    found = certify_suite(verifier, suite, stop_at_first=True)
    if found.counterexample is not None:
        case = found.verdicts[-1].case
        raise AssertionError(
            f"{found.verifier} is not lossless. On {case}: {found.counterexample.in_words()}."
        )
    return found
