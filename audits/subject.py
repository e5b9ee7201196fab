"""What a file of ``libraries`` says: the library, and its samplers, as data."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from audits.loading.library_code import Code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from audits.loading.sources import fetch_commit
from spectheory.foundation.results import LOSSLESS
from spectheory.foundation.wheels import Release, fetch


class Library(NamedTuple):
    """A library as the package index has it, or a repository without releases.

    Attributes:
        package: its name on the index, or the name that we give to a repository.
        top: the package that is imported, or the only module.
        tested: the version that the adapters were tested with; of a repository all digits of the commit.
        given: module -> what is imported instead.
        repository: owner/name on GitHub, where releases are commits.
    """

    package: str
    top: str
    tested: str
    given: Mapping[str, Given] = {}
    repository: str = ""

    def fetch(self, version: str, cache: Path) -> Release:
        """Download the Python files of a version, by default the tested one: a function may be in any."""
        version = version or self.tested
        if self.repository:
            address = f"https://github.com/{self.repository}"
            return fetch_commit(self.package, self.top, address, version, cache)
        return fetch(f"{self.package}=={version}", (f"{self.top}/*.py",), cache)

    def renamed(self, top: str) -> "Library":
        """The library under another package name, as a fork has it."""
        given = {moved(module, self.top, top): value for module, value in self.given.items()}
        return self._replace(top=top, given=given)


class Subject(NamedTuple):
    """A sampler of a library.

    Attributes:
        library: that has it.
        function: what is called, and where releases keep it.
        adapter: makes the sampler from the imported function; a round from that and the imported drafter.
        tested: sha256 of the function's files that the adapter was tested with -> their version.
        signature: how the sampler is called, a name of ``spectheory.auditing``'s signatures.
        verdict: the verdict on the tested version.
        mistake: (a text of the tested code, what it is replaced by): the edited code is the specimen that an
            audit must find not lossless.  Empty where the tested code itself is not lossless.
        mend: pairs of such texts: the code edited in all of them must be lossless, where the
            tested code is not.
        options: arguments of the function.
        drafter: the class or function that drafts, where it is audited too.
        generator: makes a draft generator from the imported drafter and a pair, where the drafter is judged
            by what it reports; where it is ``None`` a drafter is a part of the round.
        in_all: whether "all" includes it: rounds are slow, have many runs or need a pair of their own.
        settings: of ``Shipped``.
    """

    library: Library
    function: Function
    adapter: Callable[..., Callable[..., Any]]
    tested: Mapping[str, str]
    signature: str
    verdict: str = LOSSLESS
    mistake: tuple[str, str] | None = None
    mend: tuple[tuple[str, str], ...] = ()
    options: Mapping[str, Any] = {}
    drafter: Function | None = None
    generator: Callable[..., Any] | None = None
    in_all: bool = True
    settings: Mapping[str, Any] = {}

    def renamed(self, top: str) -> "Subject":
        """The sampler of a fork whose package has another name."""
        old = self.library.top

        def there(function: Function) -> Function:
            return function._replace(modules=tuple(moved(each, old, top) for each in function.modules))

        drafter = None if self.drafter is None else there(self.drafter)
        return self._replace(
            library=self.library.renamed(top), function=there(self.function), drafter=drafter
        )


def moved(module: str, old: str, new: str) -> str:
    """A module's name where its package has another name.

    Example:
        >>> moved("vllm.v1.sample", "vllm", "aphrodite"), moved("vllm_ascend.sample", "vllm", "aphrodite")
        ('aphrodite.v1.sample', 'vllm_ascend.sample')
    """
    package, dot, rest = module.partition(".")
    return f"{new if package == old else package}{dot}{rest}"


__all__ = ["Code", "Function", "Given", "Library", "Subject"]
