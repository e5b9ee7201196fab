"""Pooled selection: scored selection with outputs chosen by a linear program and then coupled anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from operator import getitem
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.arrays import divide_or_zero, like_rows, ones_like, positive_part, zeros_like
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import exact_values, float_tolerance
from spectheory.foundation.unique_rows import unique_row_indices
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.pooling import pooling_program
from spectheory.optima.solving.float_solver import solve
from spectheory.pairs.contexts import Context
from spectheory.verification.algorithms.path_selection.scored import ScoredSelection, winning_masses
from spectheory.verification.algorithms.recoupled import Recoupled

Event = tuple[Context, ...]
"""The K drafted nodes of depth L-1, sorted."""
MAX_VOCAB_SIZE = 8
"""The largest vocabulary.  The program of a node has one row for each set of tokens."""
# ``output_law`` needs the families of one part of the drafts after the other; more would only hold memory.
MAX_FAMILIES = 64
"""The most families that are kept at a time."""
SLACK = 1e-12
"""In floating point, the loss of service against the base that may be due to rounding."""


class Pooled(Recoupled):
    """Scored selection in which a linear program chooses the outputs of the last two depths again.

    An algorithm of this package (theory.md Statement 5.25), for i.i.d. drafts of one model.  It is lossless,
    with at least the block efficiency of ``base``.  On a few pairs ``Recoupled(base)`` is slightly better.
    D'' are the drafts without their last two tokens.  An event E is the multiset of drafted nodes of depth
    L-1, and a runs over these nodes.

    1. For every event E with a, compute from ``base``: P(E | D''), the law of the score at a, and
       e(a, w | E), the probability that the output keeps a and continues with w.  This reads no row of
       another node of depth L-1
    2. For each node a, choose new e(a, w | E) by a linear program.  For each E it keeps the sum over w.  For
       each w it keeps the mean over E given D'', and so the law of the output given D''.  The service is the
       mass that the scores of ``base`` can accept as leaves.  It must not fall.  The program maximises the
       mean service over the rows ``imagined`` at the other nodes
    3. Couple these outputs with the last tokens, as ``Recoupled`` does

    The program is solved in float64.  We then move the solution so that the equalities hold in the arithmetic
    of the rows, and discard it if the service falls.  So for rational rows the law is exactly lossless, and
    its block efficiency is at least the base's, whatever the solver returns.  The programs grow with 2^V and
    V^K, so this class is for enumerated pairs.

    Args:
        base: scored selection, with any levels and coupling.
        imagined: pairs of a target row and a draft row, over at most V tokens; the default is
            ``two_token_rows()``.

    Raises:
        InvalidInputError: the base is not scored selection, or ``imagined`` is empty.  ``outcome`` raises it
            if a drafted token has probability 0 in its draft row.
        EnumerationTooLargeError: ``outcome`` raises it for too many last tokens or more than 8 tokens.

    Example:
        >>> from spectheory import certify, instances, verifiers
        >>> pair = instances.random_rational([93, 23], 2, 2)
        >>> scored = verifiers["scored_multipath"]
        >>> for verifier in (scored, Recoupled(scored), Pooled(scored)):
        ...     certificate = certify(verifier, pair, 2)
        ...     print(certificate.verdict, f"{float(certificate.gap):.5f}")
        lossless 0.04008
        lossless 0.01250
        lossless 0.00000
    """

    source: ClassVar[str] = "this package (theory.md Statement 5.25)"
    base: ScoredSelection

    def __init__(self, base: Any, imagined: Sequence[tuple[Any, Any]] | None = None) -> None:
        super().__init__(base)
        if not isinstance(self.base, ScoredSelection):
            raise InvalidInputError(
                f"verifier {self.base.name!r} is not scored selection; Recoupled takes any lossless verifier"
            )
        if imagined is not None and not len(imagined):
            raise InvalidInputError("imagined needs at least one pair of rows, got none; leave it out")
        self.name = f"{self.base.name} pooled"  # type: ignore[misc]
        self.imagined = two_token_rows() if imagined is None else imagined
        self._families: dict[Any, Family] = {}

    def output_masses(self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> np.ndarray:
        outputs = super().output_masses(tokens, targets, drafts)
        num_drafts, length = tokens.shape[1:]
        if num_drafts == 1 or length == 1:
            return outputs
        if drafts.shape[-1] > MAX_VOCAB_SIZE:
            raise EnumerationTooLargeError(
                f"pooled selection enumerates the sets of tokens, of at most {MAX_VOCAB_SIZE}, got "
                f"{drafts.shape[-1]}; restrict the vocabulary"
            )
        # Paths are sorted by their tokens before the last two, so that their order does not matter.
        order = [sorted(range(num_drafts), key=begin.__getitem__) for begin in tokens[..., :-2].tolist()]
        every = np.arange(len(tokens))[:, None]
        tokens_there, targets_there, drafts_there = (side[every, order] for side in (tokens, targets, drafts))
        tokens_there[..., -2:] = 0
        first, which = unique_row_indices(tokens_there, targets_there[:, :, :-2], drafts_there[:, :, :-1])
        families = [self._family(tokens_there[n], targets_there[n], drafts_there[n]) for n in first]
        for number, family in enumerate(which.tolist()):
            nodes = nodes_of(tokens[number])
            event = tuple(sorted(nodes))
            if event not in families[family].probs:
                raise InvalidInputError(f"expected tokens that the draft rows can draw, got {nodes}")
            for path, node in enumerate(nodes):
                if nodes.index(node) == path:
                    rows = targets[number, path, -2], drafts[number, path, -1]
                    outputs[number, path, -1] = families[family].chosen(node, *rows)[event]
        return outputs

    def _family(self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> Family:
        """Return the family of these drafts.  It is kept, because drafts are evaluated in several parts."""
        key = *tokens.ravel().tolist(), *targets[:, :-2].ravel().tolist(), *drafts[:, :-1].ravel().tolist()
        if key not in self._families:
            if len(self._families) == MAX_FAMILIES:
                self._families.clear()
            self._families[key] = Family(self, tokens, targets, drafts)
        return self._families[key]


def nodes_of(paths: np.ndarray) -> list[Context]:
    """List the nodes of depth L-1 of the paths [n, L]."""
    return [tuple(path[:-1]) for path in paths.tolist()]


class Family:
    """All drafts that begin with D'', with their probabilities and the laws of the scores.

    Args:
        verifier: pooled selection.
        tokens: drafts that begin with D'', [K, L]; their last two tokens are not used.
        targets, drafts: rows along these drafts, [K, L+1, V] and [K, L, V], read to depth L-2.
    """

    def __init__(self, verifier: Pooled, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> None:
        self.verifier, self.targets, self.drafts = verifier, targets, drafts
        self.probs: defaultdict[Event, Any] = defaultdict(int)
        self.tokens: dict[Event, np.ndarray] = {}
        rows = drafts[:, -2]
        for last in product(*map(np.flatnonzero, rows)):
            drawn = tokens.copy()
            drawn[:, -2] = last
            event = tuple(sorted(nodes_of(drawn)))
            self.probs[event] += prod(map(getitem, rows, last))
            self.tokens[event] = drawn
        paths = np.concatenate(list(self.tokens.values()))
        above, read = (np.tile(side, (len(self.tokens), 1, 1)) for side in (targets[:, :-2], drafts[:, :-1]))
        laws = verifier.base.score_states(paths[:, :-1], above, read, len(rows)).masses
        self.laws = dict(zip(nodes_of(paths), laws, strict=True))
        self._chosen: dict[Any, dict[Event, np.ndarray]] = {}

    def events(self, node: Context) -> list[Event]:
        """List the events that contain the node."""
        return [event for event in self.probs if node in event]

    def chosen(self, node: Context, target_row: np.ndarray, draft_row: np.ndarray) -> dict[Event, np.ndarray]:
        """Choose e(a, . | E) for a node a with these rows, for every event E that contains a."""
        key = node, *target_row.tolist(), *draft_row.tolist()
        if key not in self._chosen:
            self._chosen[key] = dict(
                zip(self.events(node), self._choose(node, target_row, draft_row), strict=True)
            )
        return self._chosen[key]

    def _choose(self, node: Context, target_row: np.ndarray, draft_row: np.ndarray) -> np.ndarray:
        events = self.events(node)
        probs = np.array([self.probs[event] for event in events])
        own = self.own_masses(self.targets, self.drafts, node, target_row[None], draft_row[None])[0]
        sets = np.array(list(product((False, True), repeat=len(draft_row))))
        tops = (sets * draft_row).sum(axis=-1)
        limits = np.stack([self.score_limits(event, node, tops) for event in events])

        def served(masses: np.ndarray) -> Any:
            """Compute the service with the scores of the base, by a minimum cut for every event."""
            return (probs * (limits + (masses[:, None] * ~sets).sum(axis=-1)).min(axis=-1)).sum()

        tops, floor = tops.astype(float), served(own)
        imagined = [self.imagined_limits(event, node, tops) for event in events]
        program = pooling_program(
            probs.astype(float),
            own.astype(float),
            sets,
            np.stack([limits.astype(float), *np.stack(imagined, axis=1)]),
            float(floor),
        )
        point = np.array(list(solve(program).primal.values())[: own.size]).reshape(own.shape)
        kept, totals = probs * own.sum(axis=1), (probs[:, None] * own).sum(axis=0)
        chosen = with_sums(like_rows(exact_values(point), own), kept, totals) / probs[:, None]
        return chosen if served(chosen) >= floor - float_tolerance(own, SLACK) else own

    def own_masses(
        self,
        targets: np.ndarray,
        drafts: np.ndarray,
        node: Context,
        target_rows: np.ndarray,
        draft_rows: np.ndarray,
    ) -> np.ndarray:
        """Compute e(a, w | E) of the base, for R rows of the node a and its events.

        [R, V], [R, V] -> [R, E, V].  The rows of other nodes have no influence; we set them to point masses.
        """
        tokens = np.stack([self.tokens[event] for event in self.events(node)] * len(target_rows))
        here = (tokens[..., :-1] == node).all(axis=-1)
        number = np.repeat(np.arange(len(target_rows)), len(tokens) // len(target_rows))[:, None]
        targets, drafts = (np.stack([side] * len(tokens)) for side in (targets, drafts))
        for side, depth, rows in ((targets, -2, target_rows), (drafts, -1, draft_rows)):
            unread = zeros_like(rows)
            unread[:, 0] = ones_like(unread[:, 0])
            side[:, :, depth] = np.where(here[..., None], rows[number], unread[number])
        masses = Recoupled.output_masses(self.verifier, tokens, targets, drafts)[:, :, -1]
        own = masses[np.arange(len(tokens)), here.argmax(axis=-1)]
        return own.reshape((len(target_rows), -1, own.shape[-1]))

    def score_limits(self, event: Event, node: Context, tops: np.ndarray) -> np.ndarray:
        """Compute Φ [N]: P(a path through the node wins with one of its top scores), of mass ``tops`` [N]."""
        masses, one = np.stack([self.laws[other] for other in event]), event.index(node)
        law = masses[one]
        below_the_top = np.flip(np.flip(law).cumsum()) - law
        taken = np.minimum(positive_part(tops[:, None] - below_the_top), law)
        upper = masses * divide_or_zero(taken, law + zeros_like(taken))[:, None]
        cells = np.stack([masses - upper, upper], axis=-1).reshape((len(tops), len(masses), -1))
        return event.count(node) * winning_masses(cells, one)[:, 1::2].sum(axis=-1)

    def imagined_limits(self, event: Event, node: Context, tops: np.ndarray) -> np.ndarray:
        """Compute the gain in service given E if the drafts at a hit a set of tokens of mass ``tops``.

        The other nodes have imagined rows and the outputs of the base, so this is a minimum cut over their
        level sets.  [N] -> [S, N] for S pairs of imagined rows.
        """
        lost, missed = np.zeros((len(self.verifier.imagined), 1)), np.ones((len(self.verifier.imagined), 1))
        for other in set(event) - {node}:
            number = self.events(other).index(event)
            more, room = (part[:, None, number] for part in self._imagined[other])
            lost = (lost[..., None] + more).reshape((len(lost), -1))
            missed = (missed[..., None] * room ** event.count(other)).reshape((len(lost), -1))
        room = (1 - tops[:, None]) ** event.count(node)
        cuts = (lost[:, None] + 1 - missed[:, None] * room).min(axis=-1)
        return cuts - (lost + 1 - missed).min(axis=-1, keepdims=True)

    @cached_property
    def _imagined(self) -> dict[Context, tuple[np.ndarray, np.ndarray]]:
        """Compute e(T^c) and 1 - q(T), [S, E, V+1] each, of every node for the level sets T of e/q."""
        targets, drafts = self.targets.astype(float), self.drafts.astype(float)
        rows = np.zeros((2, len(self.verifier.imagined), drafts.shape[-1]))
        for number, pair in enumerate(self.verifier.imagined):
            for side, row in zip(rows, pair, strict=True):
                side[number, : len(row)] = np.array(row, dtype=float)
        found = {}
        for node in self.laws:
            own = self.own_masses(targets, drafts, node, *rows)
            _, _, wanted, draft = SortedByRatio.of(-own, rows[1][:, None] + zeros_like(own))
            start = zeros_like(own[..., :1])
            taken, hit = (np.concatenate([start, part.cumsum(axis=-1)], axis=-1) for part in (-wanted, draft))
            found[node] = own.sum(axis=-1, keepdims=True) - taken, 1 - hit
        return found


def with_sums(point: np.ndarray, row_sums: np.ndarray, column_sums: np.ndarray) -> np.ndarray:
    """Move the masses of a matrix so that its rows and columns have the given sums.

    Example:
        >>> with_sums(np.array([[0.5, 0.5], [0.0, 0.0]]), np.ones(2) / 2, np.ones(2) / 2).tolist()
        [[0.25, 0.25], [0.25, 0.25]]
    """
    point = positive_part(point)
    for axis, sums in ((1, row_sums[:, None]), (0, column_sums[None])):
        total = point.sum(axis=axis, keepdims=True)
        point = point * np.minimum(divide_or_zero(sums, total), ones_like(total))
    short = row_sums - point.sum(axis=1), column_sums - point.sum(axis=0)
    return point + short[0][:, None] * divide_or_zero(short[1], short[0].sum() + zeros_like(short[1]))


def two_token_rows(num_levels: int = 7) -> list[tuple[list[Fraction], list[Fraction]]]:
    """List pairs of a target row and a draft row on two tokens, with probabilities at midpoints of a grid.

    Example:
        >>> len(two_token_rows()), *map(str, two_token_rows(2)[1][0])
        (49, '1/4', '3/4')
    """
    grid = [Fraction(2 * number + 1, 2 * num_levels) for number in range(num_levels)]
    return [([p, 1 - p], [q, 1 - q]) for p, q in product(grid, repeat=2)]
