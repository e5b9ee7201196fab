"""A walk that several processes share: each takes a part that waits, and sends back the tree below it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pickle import PicklingError, dumps
from time import monotonic
from typing import Any, Protocol

from spectheory.exact.proof.proof_file import branch_document, tree_document
from spectheory.exact.proof.regions import Branch, Walk
from spectheory.exact.proof.resume import graft, restore
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.pair import ModelPair

SECONDS = 5.0
"""After which a process sends back what it has, and its open parts are shared anew."""


class Search(Protocol):
    """What is shared of a search.

    Attributes:
        walk: with the parts that wait.
        stuck: parts on which a condition fails, without a pair.
        away: parts that other processes walk.
        refuted: what is wrong, on which pair.
        end: when the time is up, of ``time.monotonic``.
    """

    walk: Walk
    stuck: list[Branch]
    away: Collection[Branch]
    refuted: tuple[str, ModelPair] | None
    end: float

    def walk_until(self, end: float, step: Callable[[], None]) -> None:
        """Follow the verifiers on the parts that wait."""


_search: list[Search] = []
"""That of this process, which keeps its lemmas from part to part."""


def share(
    search: Search,
    make: Callable[..., Search],
    arguments: tuple[Any, ...],
    jobs: int,
    step: Callable[[], None],
) -> None:
    """Walk through the parts that wait in several processes, until none is left or the time is up.

    Which lemmas a process knows depends on how fast the others are.  So the proof is another one from run to
    run, and the verdict is the same.

    Args:
        search: whose parts are walked.
        make, arguments: make the search of a process.
        jobs: the number of processes.
        step: called when a tree has come back.

    Raises:
        InvalidInputError: the verifier cannot be sent to another process.
    """
    try:
        dumps((make, arguments))
    except (PicklingError, AttributeError, TypeError) as error:
        raise InvalidInputError(_NOT_SENT) from error
    walk, at_work = search.walk, dict[Future[Any], Branch]()
    search.away = at_work.values()

    def goes_on() -> bool:
        return search.refuted is None and bool(walk.waiting) and monotonic() < search.end

    try:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (make, arguments)) as pool:
            while at_work or (search.refuted is None and walk.waiting and monotonic() < search.end):
                while (
                    len(at_work) < jobs
                    and search.refuted is None
                    and walk.waiting
                    and monotonic() < search.end
                ):
                    branch = walk.waiting.pop(0)  # the parts at the top are the largest
                    seconds = min(SECONDS, search.end - monotonic())
                    at_work[pool.submit(_walk_below, branch_document(walk, branch), seconds)] = branch
                for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                    tree, search.refuted = future.result()
                    branch = at_work.pop(future)
                    if search.refuted is not None:
                        return
                    search.stuck += graft(walk, tree, [branch])
                    step()
    except BrokenProcessPool as error:
        raise InvalidInputError(_NOT_SENT) from error


_NOT_SENT = """the verifier cannot be sent to another process; name it as package.module:attribute, \
or leave out jobs"""


def _begin(make: Callable[..., Search], arguments: Sequence[Any]) -> None:
    _search[:] = [make(*arguments)]


def _walk_below(document: dict[str, Any], seconds: float) -> tuple[dict[str, Any], Any]:
    """The tree below the part in a document, as far as it is walked in time, or the pair that refutes."""
    [search] = _search
    walk = search.walk
    walk.roots, walk.waiting, walk.num_regions, search.stuck = [], [], 0, []
    restore(walk, document)
    search.walk_until(monotonic() + seconds, lambda: None)
    if search.refuted is not None:
        return {}, search.refuted
    return tree_document(walk, [*walk.waiting, *search.stuck]), None
