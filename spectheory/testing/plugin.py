"""A pytest plugin: the standard suite as tests, one per pair.

    pytest --spectheory-verifier my.module:MyVerifier

collects a test for every case of the suite beside the session's own tests, and the fixture
``assert_lossless`` is the function of that name.  The plugin is loaded with pytest wherever this package is
installed; until it is used it imports nothing but pytest.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("spectheory").addoption(
        "--spectheory-verifier",
        action="append",
        default=[],
        metavar="NAME",
        help="certify this verifier (a name or module:attribute) on the standard suite, a test per pair",
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    for name in config.getoption("--spectheory-verifier"):
        items.extend(_cases(session, name))


_JUDGED = pytest.StashKey[dict[str, None]]()
"""How the cases that passed were judged, in words."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for words in config.stash.get(_JUDGED, {}):
        terminalreporter.write_line(f"spectheory: lossless on the passed pairs in {words}")


@pytest.fixture
def assert_lossless() -> Callable[..., Any]:
    """``spectheory.testing.assert_lossless``."""
    from spectheory.testing.assertions import assert_lossless as check

    return check


class SuiteItem(pytest.Item):
    def __init__(self, *, verifier: Any, case: Any, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.verifier, self.case = verifier, case

    def runtest(self) -> None:
        from spectheory.testing.assertions import assert_lossless as check

        refusal = _refusal(self.verifier, self.case)
        if refusal:
            pytest.skip(refusal)
        scope = check(self.verifier, [self.case]).scope
        names = [text.partition(" on ")[0] for text in scope.refused]
        refused = f"; refused: {', '.join(names)}" if names else ""
        judged = self.config.stash.setdefault(_JUDGED, {})
        words = f"{scope.arithmetic}, tolerance {scope.tolerance}{refused}"
        judged[words.replace(" (1)", "")] = None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> str:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[str, None, str]:
        return "spectheory standard suite", None, self.name


def _cases(session: pytest.Session, name: str) -> Iterator[SuiteItem]:
    from spectheory.exact.suite import suite_for
    from spectheory.foundation.errors import InvalidInputError
    from spectheory.verification.resolve import find_verifier

    try:
        verifier = find_verifier(name)
    except InvalidInputError as error:
        raise pytest.UsageError(str(error)) from error
    cases = suite_for(verifier)
    if all(_refusal(verifier, case) for case in cases):
        raise pytest.UsageError(f"{name} is judged on no case of the suite: {_refusal(verifier, cases[0])}")
    for case in cases:
        yield SuiteItem.from_parent(session, name=f"{name}[{case}]", verifier=verifier, case=case)


def _refusal(verifier: Any, case: Any) -> str:
    """Why a verifier is not meant for a case; empty if it takes it, or fails."""
    from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError

    try:
        verifier.bind(case.process, case.pair)
    except InvalidInputError as error:
        return "" if isinstance(error, InvalidOutcomeError) else str(error)
    return ""
