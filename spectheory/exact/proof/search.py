"""Whether a statement holds on every pair of a shape: proved, refuted by a pair, or not decided."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import Any, NamedTuple

from spectheory.exact.proof.check import digest_of
from spectheory.exact.proof.domain import Domain, Shape
from spectheory.exact.proof.draft_tuples import Drafts
from spectheory.exact.proof.formulas import Formula, formulas_of
from spectheory.exact.proof.proof_file import log_document
from spectheory.exact.proof.runs import FailedRunError
from spectheory.exact.proof.search_oracle import SearchOracle
from spectheory.exact.proof.statement import Statement, WrongPairError
from spectheory.exact.proof.statements import statement_of
from spectheory.exact.proof.verdict import PROVED, REFUTED, Proof
from spectheory.exact.proof.walk import OutOfTimeError, Walk, WrongError
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
            ``"exchangeable"``, ``"single_path"``, ``"completed"`` or ``"law"`` (``statements.KINDS``).
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
    begin, every = process_time(), Drafts(shape, process)
    claim = statement_of(statement, found, process, draft_length)
    oracle = SearchOracle(Domain(shape, every.least_support))
    walk = Walk(oracle, begin + limit)
    verdict, wrong, pair, formulas = _decided(claim, walk, oracle, every, show)
    log = log_document(oracle) if verdict == PROVED else None
    counts = walk.num_regions, len(oracle.aside), len(oracle.used)
    seconds = process_time() - begin
    return Proof(verdict, claim, shape, *counts, wrong, pair, seconds, digest_of(claim), log, formulas)


class _Decision(NamedTuple):
    """The verdict; for a statement that is refuted what is wrong on which pair; for others the formulas."""

    verdict: str
    wrong: str = ""
    pair: ModelPair | None = None
    formulas: tuple[Formula, ...] = ()


def _decided(statement: Statement, walk: Walk, oracle: SearchOracle, drafts: Drafts, show: bool) -> _Decision:
    failure = None
    try:
        for pair in _simple_pairs(walk.domain):
            if wrong := statement.wrong_at(pair):
                return _Decision(REFUTED, wrong, pair)
    except InvalidOutcomeError as error:  # the walk says what it is
        failure = error
    try:
        statement.decide(walk, drafts)
        formulas = formulas_of(walk) if show else ()
        stuck = oracle.settle_aside(walk.check_time)
        if stuck is not None:
            raise WrongError(stuck, (), "a region that was set aside has a point")
    except OutOfTimeError:
        return _Decision(UNDECIDED)
    except WrongPairError as error:
        return _Decision(REFUTED, error.wrong, error.pair)
    except (WrongError, FailedRunError) as error:
        name = statement.subjects[0].verifier.name
        try:
            for pair in _pairs_of(error, oracle):
                if wrong := statement.wrong_at(pair):
                    return _Decision(REFUTED, wrong, pair)
        except InvalidOutcomeError as failed:
            raise InvalidOutcomeError(f"verifier {name!r} failed: {failed}") from failed
        if isinstance(error, FailedRunError):
            raise InvalidOutcomeError(f"verifier {name!r} failed: {error}") from error
        return _Decision(UNDECIDED)
    if failure is not None:
        raise failure
    return _Decision(UNDECIDED) if oracle.aside else _Decision(PROVED, formulas=formulas)


def _simple_pairs(domain: Domain) -> Iterator[ModelPair]:
    points = domain.drawn_points(SIMPLE_PAIRS)
    points.sort(key=lambda point: sum(int(value.q) for value in point))
    return map(domain.pair_at, points)


def _pairs_of(error: WrongError | FailedRunError, oracle: SearchOracle) -> Iterator[ModelPair]:
    """Pairs of a region on which something fails, also some where the functions of a condition are not 0."""
    functions = error.functions if isinstance(error, WrongError) else ()
    factors = [factor for function in functions for factor, _ in oracle.domain.field.parts(function)[1]]
    return map(oracle.domain.pair_at, oracle.points_where(error.region, factors))
