"""Whether a statement holds on every pair of a shape: proved, refuted by a pair, or not decided."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from os import times
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from spectheory.exact.proof import proof_file
from spectheory.exact.proof.check import check_document
from spectheory.exact.proof.check_numbers import RejectedProofError
from spectheory.exact.proof.domain import Face, FormalPair, Shape
from spectheory.exact.proof.emptiness import Emptiness
from spectheory.exact.proof.formal_numbers import NotFollowedError
from spectheory.exact.proof.formulas import Leaves
from spectheory.exact.proof.points import Point, random_point, uniform_point
from spectheory.exact.proof.postponed import Postponement, find_facts
from spectheory.exact.proof.rational_functions import RationalFunctions
from spectheory.exact.proof.regions import LEAF, Branch, RegionRun, Walk, smallest
from spectheory.exact.proof.replay import replay
from spectheory.exact.proof.resume import read_search, restore, restore_facts
from spectheory.exact.proof.shared_walk import share
from spectheory.exact.proof.statements import Statement
from spectheory.exact.proof.stops import formal_stops, fresh
from spectheory.exact.proof.verdict import PROVED, REFUTED, TRUSTED, Proof, drafts_document
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.results import UNDECIDED
from spectheory.foundation.validation import check_count, check_positive
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair
from spectheory.verification.resolve import find_verifier
from spectheory.verification.sampler_runs import RunsOnTuples
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier_code import code_digest

_log = logging.getLogger(__name__)

SAMPLED_PAIRS = 1000
_NOT_REFUTED: tuple[str, ModelPair | None] = "", None
SIMPLE_PAIRS, SIMPLE_PAIRS_OF_USERS = 40, 2
"""Tried before the walk; more is checked of the verifier of a user on every one."""
CONFIDENCE = 0.99
KEEP_SECONDS = 60.0
"""Between two writes of a search that goes on."""
LONGER_QUESTIONS = (20, 100)
"""Milliseconds for a question to the solver about a region that is neither refuted nor known to be empty."""
POSTPONED_SHARE = 0.5
"""Of the time, for a proof that postpones decisions, before all regions are walked."""


def prove(
    verifier: str | Any,
    vocab_size: int,
    draft_length: int,
    drafts: int | DraftProcess = 1,
    *,
    statement: str = "lossless",
    positive: bool = False,
    show: bool = False,
    time_limit: float | None = None,
    resume: str | Path | None = None,
    jobs: int = 1,
    keep: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Proof:
    """Decide whether a verifier is lossless, or another statement about it, on every pair of a shape.

    The verifier is run on formal numbers (docs/proofs.md).  Every comparison splits the pairs by the sign of
    a polynomial.  On every region the conditions of the statement are decided: for ``"lossless"``, that the
    law of the output is that of the target.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        vocab_size: V, at least 2.
        draft_length: L.
        drafts: K, or a ``PrefixTree`` or ``WithoutReplacement``.
        statement: ``"lossless"``, ``"optimal"``, ``"at_least:OTHER"``, ``"prefix_matching"``,
            ``"exchangeable"``, ``"single_path"``, ``"completed"`` or ``"law"``
            (``exact/proof/statements.py``).
        positive: speak of pairs without zeros only.
        show: write the block efficiency on every region down (``Proof.formulas``).
        time_limit: seconds, after which the verdict is ``"undecided"``.
        resume: a file that ``save`` of an undecided search of the same statement wrote.  A proof that is
            found from there is checked as ``check_proof`` does; where a solver is trusted, so is the file.
        jobs: processes that share the walk.  The verdict does not depend on their number; the proof does,
            because a process closes parts by the lemmas that it knows.
        keep: a file that holds the search, for ``resume``, while it goes on: written once a minute, or less
            often where writing takes long, but not while decisions are postponed.
        progress: called with the regions done and those known of.

    Raises:
        InvalidInputError: a bad argument, or a verifier that computes in float64.
        RejectedProofError: the file to resume says something that does not hold.
        UnknownNameError: no verifier or no statement has that name.
        InvalidOutcomeError: the verifier leaves the array functions, or fails.

    Example:
        >>> prove("token", 2, 1)
        <token: proved, 2 tokens, draft length 1, 1 draft, all rows>
        >>> found = prove("spectheory.verification.defective.corrections:TargetCorrection", 2, 1)
        >>> found.verdict, found.wrong
        ('refuted', "the output law is not the target's")
        >>> prove("block", 2, 1, statement="at_least:token")
        <block, at_least:token: proved, 2 tokens, draft length 1, 1 draft, all rows>
    """
    if check_count("vocab_size", vocab_size) < 2:
        raise InvalidInputError(f"vocab_size must be at least 2, got {vocab_size}")
    limit = float("inf") if time_limit is None else check_positive("time_limit", time_limit)
    process, found = draft_process(drafts), find_verifier(verifier)
    if isinstance(getattr(found, "user_object", found), RunsOnTuples):
        raise InvalidInputError(
            f"{found.name!r} is a sampler, whose random numbers are followed on one pair at a time; certify "
            "it on pairs, or prove a verifier that states its outcome(paths, target_rows, draft_rows)"
        )
    if not isinstance(process, (Iid, PrefixTree, WithoutReplacement)):
        raise InvalidInputError(f"{process} is not i.i.d. drafts or a tree; a proof speaks of these")
    check_count("draft_length", draft_length)
    if isinstance(process, (PrefixTree, WithoutReplacement)):
        process.draws(draft_length)
    before = fresh(found)  # a verifier may count its calls
    claim = Statement.of(statement, found, process, draft_length)
    shape = Shape(vocab_size, draft_length, positive, claim.has_rows_beyond)
    shape.check_size()
    if show and (resume is not None or check_count("jobs", jobs) > 1):
        raise InvalidInputError(
            "formulas are of regions that this process walks; leave out show, resume or jobs"
        )
    search = _Search(claim, shape, monotonic(), limit, Leaves() if show else None)
    search.jobs, search.progress = check_count("jobs", jobs), progress
    search.keep = None if keep is None else Path(keep)
    stored = None if resume is None else read_search(resume, search.scope())
    if stored is None:
        search.try_simple_pairs()
    postponed = search.postponed(None if stored is None else stored.get("postponed"))
    if postponed is not None:
        return postponed
    if stored is not None:
        restore(search.walk, stored)
    proof = search.run()
    is_believed = stored is None and not isinstance(found, UserVerifier)
    if proof.verdict == PROVED and proof.tree is not None and not is_believed:
        check_document({**search.scope(), **proof.tree}, before)
    return proof


class _Search:
    """One call of ``prove``."""

    def __init__(
        self, statement: Statement, shape: Shape, start: float, limit: float, leaves: Leaves | None
    ) -> None:
        self.leaves = leaves
        self.statement, self.verifier, self.process = statement, *statement.subjects[0][:2]
        self.shape, self.start, self.end = shape, start, start + limit
        self.start_of_cpu = _cpu_seconds()
        self.jobs, self.num_left = 1, 0
        self.progress: Callable[[int, int], None] | None = None
        self.digest = code_digest(*(one for subject in statement.subjects for one in subject[:2]))
        self.walk = Walk(shape, RationalFunctions(shape.names()), Emptiness(self.end))
        self.keep: Path | None = None
        self.keep_at = start + KEEP_SECONDS
        self.stuck: list[Branch] = []
        self.away: Collection[Branch] = ()
        self.refuted: tuple[str, ModelPair] | None = None
        self.facts: Postponement | None = None

    def scope(self) -> dict[str, Any]:
        """The fields of a stored search that say of what it speaks."""
        return {
            "statement": self.statement.name,
            "vocab_size": self.shape.vocab_size,
            "draft_length": self.shape.draft_length,
            "drafts": drafts_document(self.process),
            "domain": self.shape.domain,
            "verifier_code": self.digest,
        }

    def postponed(self, stored: dict[str, Any] | None = None) -> Proof | None:
        """A proof that postpones decisions, where one is found; it counts once it is checked.

        Args:
            stored: facts that a stopped search has found.
        """
        if self.refuted is not None or self.leaves is not None or self.shape.draft_length < 2:
            return None
        if self.statement.has_rows_beyond:
            return None
        limit = self.start + POSTPONED_SHARE * (self.end - self.start)
        begin = None if stored is None else partial(restore_facts, stored=stored)
        if not self._is_right_on_a_pair_of_each_face():  # the walk says what it is
            return None
        self.facts = find_facts(self.statement, self.shape, limit, self.progress, begin)
        if self.facts is None or not self.facts.is_settled:
            return None
        tree = proof_file.postponed_document(self.facts)
        try:
            check_document({**self.scope(), **tree}, self.verifier)
        except RejectedProofError:
            return None
        self.walk = self.facts.walk
        return self._result(0, tree)

    def run(self) -> Proof:
        walk = self.walk
        entered = [face for face, _ in walk.roots]
        faces = [face for face in self.shape.faces() if self._can_be_drafted(face) and face not in entered]
        self.num_left = len(faces)
        while self.refuted is None and (walk.waiting or self.num_left) and monotonic() <= self.end:
            while self.num_left and (self.jobs > 1 or not walk.waiting):
                walk.enter(faces[-self.num_left], len(walk.roots))
                self.num_left -= 1
            if self.jobs > 1:
                walk.waiting.reverse()  # the face without zeros first
                arguments = self.statement, self.shape, self.start, self.end - self.start, None
                share(self, _Search, arguments, self.jobs, self._step)
            else:
                self.walk_until(self.end, self._step)
            if not walk.waiting and not self.num_left:
                self._settle_stuck()
        return self._result(self._num_open())

    def _settle_stuck(self) -> None:
        """Ask longer whether the regions where a condition fails are empty; those with a pair wait."""
        for seconds in LONGER_QUESTIONS:
            for branch in list(self.stuck):
                late = monotonic() > self.end or self.walk.waiting
                found = None if late else self.walk.emptiness.settle(branch.pair, branch.known, seconds)
                if found is not None:
                    self.stuck = [other for other in self.stuck if other is not branch]
                    if isinstance(found, int):
                        branch.part.lemma = found
                    else:
                        branch.points = [found]
                        self.walk.waiting.append(branch)
                self._step()

    def walk_until(self, end: float, step: Callable[[], None]) -> None:
        """Follow the verifiers on the branches that wait, on the first of them in any case."""
        while self.walk.waiting and self.refuted is None:
            self._walk_one(self.walk.waiting.pop())
            step()
            if monotonic() > end:
                break

    def _step(self) -> None:
        walk = self.walk
        _log.debug("prove: %d regions decided, %d wait", walk.num_regions, len(walk.waiting) + self.num_left)
        num_open = self._num_open()
        if self.keep is not None and num_open and self.refuted is None and monotonic() >= self.keep_at:
            begun = monotonic()
            self._result(num_open).save(self.keep)
            self.keep_at = monotonic() + max(KEEP_SECONDS, 30 * (monotonic() - begun))
        if self.progress is not None:
            self.progress(walk.num_regions, walk.num_regions + num_open)

    def _num_open(self) -> int:
        return len(self.walk.waiting) + len(self.stuck) + len(self.away) + self.num_left

    def try_simple_pairs(self) -> None:
        """Look for a wrong pair among simple ones, which also finds smaller pairs than the walk does."""
        random, pair = Random(0), FormalPair(self.shape, self.walk.field, next(self.shape.faces()))
        drawn = (random_point(pair, random) for _ in range(SIMPLE_PAIRS))
        points = sorted(drawn, key=lambda point: point.size)
        for point in points[: SIMPLE_PAIRS_OF_USERS if isinstance(self.verifier, UserVerifier) else None]:
            found = pair.pair_at(point.values)
            try:
                wrong = self.statement.wrong_at(found)
            except InvalidOutcomeError:  # the walk says what it is
                return
            if wrong:
                self.refuted = wrong, found
                return

    def _is_right_on_a_pair_of_each_face(self) -> bool:
        """Of a user's verifier, which sees other numbers of tuples where the draft has zeros."""
        random = Random(0)
        for face in self.shape.faces() if isinstance(self.verifier, UserVerifier) else ():
            if self._can_be_drafted(face):
                pair = FormalPair(self.shape, self.walk.field, face)
                found = pair.pair_at(random_point(pair, random).values)
                try:
                    if self.statement.wrong_at(found):
                        return False
                except InvalidOutcomeError:
                    return False
        return True

    def _can_be_drafted(self, face: Face) -> bool:
        if not isinstance(self.process, WithoutReplacement):
            return True
        return all(len(support) >= self.process.widths[len(context)] for context, support in face.items())

    def _walk_one(self, branch: Branch) -> None:
        """Follow the verifiers on one branch to a leaf; branches that they meet on the way wait."""
        run, name, wrong = RegionRun(self.walk, branch), self.verifier.name, ""
        run.begin()
        try:
            laws = [
                formal_stops(bound, branch.pair, run, process)
                for _, process, bound in self.statement.subjects
            ]
            for condition in self.statement.conditions(branch.pair, run, laws):
                if not run.one_has_sign(condition.functions, condition.mask):
                    wrong = condition.wrong
                    break
            run.check_followed(name)
        except (Exception, NotFollowedError) as error:
            run.check_followed(name)
            if not run.dead:
                if isinstance(error, InvalidInputError):
                    raise
                raise InvalidOutcomeError(
                    f"verifier {name!r} failed: {type(error).__name__}: {error}"
                ) from error
            return
        if run.dead:
            return
        here = run.branch
        if wrong and here.points:
            self._refute(here, wrong)
        elif wrong:
            self.stuck.append(here)
        elif run.is_refined:
            self.walk.waiting.append(here)
        else:
            if here.points:
                point = smallest(here.points)
                of_user = isinstance(self.verifier, UserVerifier)
                for one in {point, max(here.points, key=lambda each: each.size)} if of_user else {point}:
                    for (_, process, bound), law in zip(self.statement.subjects, laws, strict=True):
                        replay(bound, here.pair, one, process, law)
                pair = here.pair.pair_at(point.values)
                if self.statement.has_rows_beyond and self.statement.wrong_at(pair):
                    raise InvalidOutcomeError(
                        f"the modified target rows of verifier {name!r} are other ones on rationals than on "
                        "formal numbers; they must not depend on the type of a number"
                    )
            if self.leaves is not None:
                self.leaves.add(here.pair, here.known, laws[0])
            here.part.target = LEAF
            self.walk.num_regions += 1

    def _refute(self, branch: Branch, wrong: str) -> None:
        random, known = Random(0), list(branch.known.items())
        more = (random_point(branch.pair, random) for _ in range(300))
        point: Point = smallest([*branch.points, *(one for one in more if one.is_in(known))])
        pair = branch.pair.pair_at(point.values)
        try:
            holds = not self.statement.wrong_at(pair)
        except InvalidOutcomeError:
            holds = False
        if holds:
            raise InvalidOutcomeError(
                f"verifier {self.verifier.name!r} computes something else on rationals than formally: "
                "a pair that refutes it formally does not; it must not ask for the type of a number"
            )
        self.refuted = wrong, pair

    def _result(self, num_open: int, tree: dict[str, Any] | None = None) -> Proof:
        walk = self.walk
        lemmas, trusted = walk.emptiness.lemmas, 0
        if self.refuted is not None:
            verdict = REFUTED
        elif num_open:
            verdict = UNDECIDED
        else:
            tree = tree or proof_file.tree_document(walk)
            trusted = sum(lemma["terms"] is None for lemma in tree["lemmas"])
            verdict = TRUSTED if trusted else PROVED
        return Proof(
            verdict,
            self.verifier.name,
            self.statement,
            self.shape,
            self.process,
            walk.num_regions,
            num_open,
            len(lemmas) if tree is None else len(tree["lemmas"]),
            sum(lemma.is_trusted for lemma in lemmas) if tree is None else trusted,
            *(self.refuted or _NOT_REFUTED),
            self._outside() if verdict == UNDECIDED else 0.0,
            monotonic() - self.start,
            _cpu_seconds() - self.start_of_cpu,
            self.digest,
            tree,
            () if self.leaves is None else self.leaves.formulas(),
            self._unfinished() if verdict == UNDECIDED else None,
        )

    def _unfinished(self) -> dict[str, Any]:
        """What ``resume`` goes on from: the tree, and the facts if decisions were postponed."""
        tree = proof_file.tree_document(self.walk, [*self.walk.waiting, *self.stuck, *self.away])
        if self.facts is None or not self.facts.facts:
            return tree
        return tree | {"postponed": proof_file.postponed_document(self.facts)}

    def _outside(self) -> float:
        """The Clopper–Pearson bound of the share of uniform pairs that lie in open regions."""
        random, outside = Random(1), 0
        if not self.walk.roots:
            return 1.0
        whole = self.walk.roots[0][0]
        branches = [b for b in (*self.walk.waiting, *self.stuck) if b.pair.face == whole]
        pair = next((b.pair for b in branches), None)
        for _ in range(SAMPLED_PAIRS if pair is not None else 0):
            point = uniform_point(pair, random)  # type: ignore[arg-type]
            outside += any(point.is_in(branch.known.items()) for branch in branches)
        if outside == SAMPLED_PAIRS:
            return 1.0
        from scipy.stats import beta  # half a second, which only a search that ends early needs

        return float(beta.ppf(CONFIDENCE, outside + 1, SAMPLED_PAIRS - outside))


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(times()[:4])
