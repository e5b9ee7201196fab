"""Assertions for tests: a verifier passes the standard suite, or a sampler passes the audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase
from spectheory.exact.suite_certificate import SuiteCertificate
from spectheory.pairs.pair import ModelPair

if TYPE_CHECKING:
    from spectheory.auditing import AuditCertificate


@overload
def assert_lossless(verifier: Callable[..., Any], **options: Any) -> AuditCertificate: ...
@overload
def assert_lossless(
    verifier: str | Any, suite: Iterable[SuiteCase] | None = None, **options: Any
) -> SuiteCertificate: ...
def assert_lossless(verifier: str | Any, suite: Iterable[SuiteCase] | None = None, **options: Any) -> Any:
    """Fail unless the verifier is lossless on every pair of a suite.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.  A function is taken
            as a sampler in torch, see ``assert_sampler_lossless``.
        suite: the cases; by default the standard suite, see ``spectheory.exact.suite_cases``.
        options: ``quick``, ``cases``, ``seed`` and ``progress`` of ``certify_suite``.  If ``verifier`` is a
            function, the options of ``assert_sampler_lossless``.

    Returns:
        The certificate of the suite.  If ``verifier`` is a function, the certificate of its audit.

    Raises:
        AssertionError: the verifier is not lossless.  The message names the smallest failing pair, the
            prefix, the drafts and the scope.
        InvalidInputError: ``verifier`` is not a verifier.
        TypeError: an option is unknown.

    Example:
        >>> from spectheory.verification.defective import defects
        >>> try:
        ...     assert_lossless(defects["target_correction"], quick=True)
        ... except AssertionError as error:
        ...     print(str(error)[:66])
        target_correction is not lossless. On bernoulli_one_half-L1, 1 dra
    """
    if suite is None and callable(verifier) and not hasattr(verifier, "outcome"):
        return assert_sampler_lossless(verifier, **options)
    found = certify_suite(verifier, suite, stop_at_first=True, **options)
    if found.counterexample is not None:
        first = found.failures[0]
        raise AssertionError(
            f"{found.verifier} is not lossless. On {first.case}: {found.counterexample.in_words()}. "
            f"{found.headline()}"
        )
    return found


def assert_sampler_lossless(
    sampler: Callable[..., Any],
    signature: str = "sampler",
    pairs: Mapping[str, ModelPair] | None = None,
    *,
    accept: Literal["undecided"] | None = None,
    **options: Any,
) -> AuditCertificate:
    """Fail unless the audit of a sampler in torch finds it lossless, exactly or up to float32.

    Args:
        sampler: the function as users call it; it draws its random numbers itself.
        signature, pairs: as in ``spectheory.audit``.
        accept: "undecided" to pass if the audit reaches no verdict.  The judgement is then printed.
        options: ``drafts``, ``within``, ``quick``, ``time_limit``, ``trace`` and ``progress``
            of ``spectheory.audit``.

    Returns:
        The certificate of the audit.  Its findings include forbidden tokens whose probability is below
        rounding.

    Raises:
        AssertionError: the sampler is not lossless, or the audit is undecided and ``accept`` is None.  The
            message gives the reason and any counterexample.
        MissingDependencyError: torch is not installed.
        TypeError: an option is unknown.

    Example:
        >>> import torch
        >>> from spectheory import instances
        >>> def drawn(paths, target_rows, draft_rows, generator):
        ...     '''Draws from the target, and looks at no draft.'''
        ...     return [int(torch.multinomial(target_rows[0, 0], 1, generator=generator))]
        >>> found = assert_sampler_lossless(drawn, pairs={"thirds": instances.two_token(1)})
        >>> found.verdict
        'lossless'
    """
    from spectheory.auditing import audit

    found = audit(sampler, pairs, signature=signature, stop_at_first=True, **options)
    if accept == "undecided" and not found.is_decided:
        print(f"{found.sampler}: {found.judgement()[0]}")
    elif not found:
        words = "" if found.counterexample is None else f". {found.counterexample.in_words()}"
        raise AssertionError(f"{found.headline()}{words}")
    return found
