"""The standard suite, and the audit of a sampler, each as one line of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from spectheory.auditing import audit
from spectheory.pair import ModelPair
from spectheory.suite import SuiteCase, SuiteCertificate, certify_suite

if TYPE_CHECKING:
    from spectheory.auditing import AuditCertificate


@overload
def assert_lossless(verifier: Callable[..., Any]) -> AuditCertificate: ...
@overload
def assert_lossless(verifier: str | Any, suite: Iterable[SuiteCase] | None = None) -> SuiteCertificate: ...
def assert_lossless(verifier: str | Any, suite: Iterable[SuiteCase] | None = None) -> Any:
    """Fail unless the verifier is lossless on every pair of a suite.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``; a function is a
            sampler in torch, see ``assert_sampler_lossless``.
        suite: the cases; by default the standard suite, see ``spectheory.suite``.

    Returns:
        The certificate of the suite; of a function, that of its audit.

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
    if suite is None and callable(verifier) and not hasattr(verifier, "outcome"):
        return assert_sampler_lossless(verifier)
    found = certify_suite(verifier, suite, stop_at_first=True)
    if found.counterexample is not None:
        case = found.verdicts[-1].case
        raise AssertionError(
            f"{found.verifier} is not lossless. On {case}: {found.counterexample.in_words()}."
        )
    return found


def assert_sampler_lossless(
    sampler: Callable[..., Any], signature: str = "sampler", pairs: Mapping[str, ModelPair] | None = None
) -> AuditCertificate:
    """Fail unless the audit of a sampler in torch finds it lossless, exactly or up to float32.

    Args:
        sampler: the function as it is shipped; it draws its random numbers itself.
        signature, pairs: as in ``spectheory.audit``.

    Returns:
        The certificate of the audit.  A forbidden token that is rarer than rounding is among its findings.

    Raises:
        AssertionError: it is not, or that is not decided; the text says why, with a counterexample.
        MissingDependencyError: torch is not installed.

    Example:
        >>> from spectheory.auditing.subjects.specimens import sample_and_compare
        >>> from spectheory import instances
        >>> found = assert_sampler_lossless(sample_and_compare, pairs={"thirds": instances.two_token(1)})
        >>> found.verdict
        'exactly lossless'
    """
    found = audit(sampler, pairs, signature=signature, stop_at_first=True)
    if not found.is_lossless:
        words = "" if found.counterexample is None else f". {found.counterexample.in_words()}"
        raise AssertionError(f"{found.headline()}{words}")
    return found
