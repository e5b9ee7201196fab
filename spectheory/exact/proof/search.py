"""Whether a statement holds on every pair of a shape: proved, refuted by a pair, or not decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import process_time
from typing import Any

from spectheory.exact.proof.certificates import Lemmas
from spectheory.exact.proof.check import digest_of
from spectheory.exact.proof.conditions import WrongPairError, begin_walk, walk_statement
from spectheory.exact.proof.domain import Domain, Points, Shape
from spectheory.exact.proof.draft_tuples import Drafts
from spectheory.exact.proof.formulas import Formula, formulas_of
from spectheory.exact.proof.numbers import Factor
from spectheory.exact.proof.oracle import Oracle
from spectheory.exact.proof.proof_file import log_document
from spectheory.exact.proof.runs import FailedRunError
from spectheory.exact.proof.statements import Statement
from spectheory.exact.proof.verdict import PROVED, REFUTED, Proof
from spectheory.exact.proof.walk import OutOfTimeError, WrongError
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.results import UNDECIDED
from spectheory.foundation.validation import check_count, check_positive
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair
from spectheory.verification.resolve import find_verifier

SIMPLE_PAIRS = 40
"""Tried before the walk: most wrong verifiers are wrong on one of them."""


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
) -> Proof:
    """Decide whether a verifier is lossless, or another statement about it, on every pair of a shape.

    The verifier is run on formal numbers (docs/proofs.md).  Every comparison splits the pairs by the sign of
    a polynomial.  On every region the conditions of the statement are decided: for ``"lossless"``, that the
    law of the output is the target's.

    Args:
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        vocab_size: V, at least 2.
        draft_length: L.
        drafts: K, or a ``PrefixTree`` or ``WithoutReplacement``.
        statement: ``"lossless"``, ``"optimal"``, ``"at_least:OTHER"``, ``"prefix_matching"``,
            ``"exchangeable"``, ``"single_path"``, ``"completed"`` or ``"law"`` (``statements.py``).
        positive: speak of pairs without zeros only.
        show: write the block efficiency on every region down (``Proof.formulas``).
        time_limit: seconds of the processor, after which the verdict is ``"undecided"``.

    Raises:
        InvalidInputError: a bad argument, or a verifier that computes in float64.
        UnknownNameError: no verifier or no statement has that name.
        InvalidOutcomeError: the verifier leaves the array functions, or fails.

    Example:
        >>> prove("token", 2, 1).verdict
        'proved'
        >>> found = prove("spectheory.verification.defective.corrections:TargetCorrection", 2, 1)
        >>> found.verdict, found.wrong
        ('refuted', "the output law is not the target's")
        >>> prove("block", 2, 1, statement="at_least:token").verdict
        'proved'
    """
    if check_count("vocab_size", vocab_size) < 2:
        raise InvalidInputError(f"vocab_size must be at least 2, got {vocab_size}")
    limit = float("inf") if time_limit is None else check_positive("time_limit", time_limit)
    process, found = draft_process(drafts), find_verifier(verifier)
    check_count("draft_length", draft_length)
    shape = Shape(vocab_size, draft_length, positive)
    shape.check_size()
    main = Drafts(shape, process)
    claim = Statement.of(statement, found, process, draft_length)
    return _search(claim, shape, main, process_time() + limit, show)


def _search(statement: Statement, shape: Shape, drafts: Drafts, deadline: float, show: bool) -> Proof:
    begin = process_time()
    domain = Domain(shape, drafts.least_support)
    oracle = Oracle(domain, Points(domain), Lemmas(domain.field))
    walk, runs = begin_walk(statement, domain, drafts, oracle, deadline)
    digest = digest_of(statement)

    def result(
        verdict: str,
        wrong: str = "",
        pair: ModelPair | None = None,
        log: dict[str, Any] | None = None,
        formulas: tuple[Formula, ...] = (),
    ) -> Proof:
        lemmas = oracle.lemmas.lemmas if log is None else log["lemmas"]
        counts = regions if verdict == PROVED else walk.num_regions, len(oracle.aside), len(lemmas)
        seconds = process_time() - begin
        return Proof(verdict, statement, shape, *counts, wrong, pair, seconds, digest, log, formulas)

    name = statement.subjects[0].verifier.name
    try:
        refuted = next(_wrong_pairs(statement, _simple_pairs(domain)), None)
    except InvalidOutcomeError:  # the walk says what it is
        refuted = None
    try:
        if refuted is None:
            walk_statement(statement, walk, runs)
            regions, stuck = walk.num_regions, oracle.settle_aside()
            if stuck is not None:
                raise WrongError(stuck, (), "a region that was set aside has a point")
            if oracle.aside:
                return result(UNDECIDED)
            log = log_document(oracle)
            formulas = formulas_of(walk, runs[0]) if show else ()
            return result(PROVED, log=log, formulas=formulas)
    except WrongPairError as error:
        refuted = error.wrong, error.pair
    except (WrongError, FailedRunError) as error:
        try:
            refuted = next(_wrong_pairs(statement, _pairs_of(error, oracle, domain)), None)
        except InvalidOutcomeError as failure:
            raise InvalidOutcomeError(f"verifier {name!r} failed: {failure}") from failure
        if refuted is None and isinstance(error, FailedRunError):
            raise InvalidOutcomeError(f"verifier {name!r} failed: {error}") from error
        if refuted is None:
            return result(UNDECIDED)
    except OutOfTimeError:
        return result(UNDECIDED)
    return result(REFUTED, *refuted)


def _simple_pairs(domain: Domain) -> list[ModelPair]:
    points = domain.drawn_points(SIMPLE_PAIRS)
    points.sort(key=lambda point: sum(int(value.q) for value in point))
    return [domain.pair_at(point, domain.contexts) for point in points]


def _pairs_of(error: WrongError | FailedRunError, oracle: Oracle, domain: Domain) -> Iterator[ModelPair]:
    """Pairs of a region on which something fails, also some where the functions of a condition are not 0."""
    factors: list[Factor] = []
    for function in error.functions if isinstance(error, WrongError) else ():
        _, odd, even = domain.field.signs(function)
        factors += [*odd, *even]
    for point in oracle.points_where(error.region, factors):
        yield domain.pair_at(point, error.region.supports)


def _wrong_pairs(statement: Statement, pairs: Iterable[ModelPair]) -> Iterator[tuple[str, ModelPair]]:
    """What is wrong on each wrong pair."""
    for pair in pairs:
        wrong = statement.wrong_at(pair)
        if wrong:
            yield wrong, pair
