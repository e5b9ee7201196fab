"""Recoupling: keep the output law of a verifier, and couple it anew with the last drafted tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from itertools import combinations_with_replacement, product
from math import prod
from operator import getitem
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array, like_rows, namespace, take_path, take_row, zeros_like
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import exact_values, fractions_if_exact, is_exact
from spectheory.foundation.unique_rows import unique_row_indices
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.one_position.joint_cut import min_cut_of_nodes
from spectheory.optima.transport import largest_coupling
from spectheory.pairs.contexts import count_orders, first_path_with_prefix, prefix_of_leaf, rows_along
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome
from spectheory.verification.user import as_verifier
from spectheory.verification.verifier import Verifier

MAX_LAST_TOKENS = 20_000
"""The most tuples of last tokens that are enumerated for one tuple of drafts without last tokens."""


class Recoupled(Verifier):
    """A lossless verifier that accepts at least as many full paths as ``base`` (theory.md Statement 5.24).

    D' are the drafts without their last tokens W, and a runs over the drafted nodes of depth L-1.

    1. From ``base``, averaged over W, compute e(a, w), the probability given D' that the output keeps a and
       continues with w, and the law of the outputs that stop above depth L-1
    2. Find a maximum flow from the pairs (a, w) to the tuples W.  (a, w) may send flow to each W in which a
       path through a draws w
    3. Given W, accept the leaf (a, w) with probability flow((a, w), W) / P(W | D').  Otherwise draw from the
       mass of step 1 that the flow does not carry: a correction token w at a, or a stop above

    The law of the output, completed with the target, stays the law of ``base``.  The block efficiency rises
    by the full paths that the flow adds, and never falls.  At L = 1 the acceptance is the optimum α_K.
    Step 1 evaluates ``base`` on all V^K last tokens.  So this class is for enumerated pairs and restricted
    models, not for full vocabularies.

    Args:
        base: a lossless verifier that does not read the target's rows at depth L.

    Raises:
        InvalidInputError: the base is not lossless.  ``outcome`` raises it if a drafted token has probability
            0 in its draft row.
        EnumerationTooLargeError: ``outcome`` raises it if there are too many tuples of last tokens.

    Example:
        >>> from spectheory import certify, instances, verifiers
        >>> pair = instances.two_token(2)
        >>> certificate = certify(Recoupled(verifiers["scored_multipath"]), pair, 2)
        >>> print(certificate.verdict, certificate.block_efficiency, certificate.optimum)
        lossless 212/81 212/81
    """

    source: ClassVar[str] = "this package (theory.md Statement 5.24)"

    def __init__(self, base: Any) -> None:
        self.base = as_verifier(base)
        if not self.base.lossless:
            raise InvalidInputError(f"verifier {self.base.name!r} is not lossless; recouple a lossless one")
        self.name = f"{self.base.name} recoupled"  # type: ignore[misc]
        self.exact, self.exchangeable = self.base.exact, self.base.exchangeable  # type: ignore[misc]
        self.draft_processes = {"iid", "per_path"} & set(self.base.draft_processes)  # type: ignore[misc]
        self.max_draft_length = self.base.max_draft_length  # type: ignore[misc]

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Recoupled:
        super().bind(process, pair)
        bound = copy(self)
        bound.base = self.base.bind(process, pair)
        return bound

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp, batch = namespace(target_rows), paths.shape[:-2]
        tokens, targets, drafts = (
            _on_host(array).reshape((-1, *array.shape[len(batch) :]))
            for array in (paths, target_rows, draft_rows)
        )
        stop_probs = np.full(targets.shape[:-1], 0, dtype=object)
        left = np.full(drafts.shape, 0, dtype=object)
        for members, coupling in self._couplings(tokens, targets, drafts):
            left[members] = coupling.left
            for number in members:
                stop_probs[number] = coupling.stop_probs(tokens[number, :, -1])
        shape = (*batch, *drafts.shape[1:])
        rows = xp.concat([like_rows(left, target_rows).reshape(shape), target_rows[..., -1:, :]], axis=-2)

        def weights(path_index: Array, length: Array) -> Array:
            return take_row(take_path(rows, path_index), length)

        return Outcome.from_weights(
            like_rows(stop_probs, target_rows).reshape(tuple(target_rows.shape[:-1])), weights
        )

    def block_efficiency(self, pair: ModelPair, num_drafts: int) -> Any:
        """Compute the block efficiency for i.i.d. drafts by minimum cuts, without flows or the output law.

        Example:
            >>> from spectheory import instances, verifiers
            >>> print(Recoupled(verifiers["block"]).block_efficiency(instances.two_token(2), 2))
            182/81
        """
        pair = pair if self.exact else pair.to_float()
        size, length = pair.vocab_size, pair.draft_length
        probs = pair.draft_path_probs(length - 1)
        nodes, num_drafts = np.flatnonzero(probs).tolist(), check_num_drafts(num_drafts)
        if self.exchangeable:
            events = list(combinations_with_replacement(nodes, num_drafts))
        else:
            events = list(product(nodes, repeat=num_drafts))
        depths = range(length + 1)
        leaves = np.array(events) * size
        prefixes = np.stack([prefix_of_leaf(leaves, depth, length, size) for depth in depths], axis=-1)
        sides = pair.numbers.target, pair.numbers.draft
        targets, drafts = (rows_along(side, prefixes) for side in sides)
        outputs = fractions_if_exact(self.output_masses(prefixes[..., 1:] % size, targets, drafts))
        total = 0
        for number, event in enumerate(events):
            holders = [event.index(node) for node in sorted(set(event))]
            counts = [event.count(event[path]) for path in holders]
            rows = fractions_if_exact(drafts[number, holders, -1])
            leaf = min_cut_of_nodes(outputs[number, holders, -1], rows, counts).value
            lengths = outputs[number].sum(axis=(0, -1)) * (1 + np.arange(length))
            prob = prod(probs[node] for node in event) * (count_orders(event) if self.exchangeable else 1)
            total += prob * (lengths.sum() + leaf)
        return total

    def _couplings(
        self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Coupling]]:
        """Yield (indices of the tuples with the same D', their coupling), once per distinct D'."""
        before = tokens.copy()
        before[..., -1] = 0
        first, which = unique_row_indices(before, targets[:, :, :-1], drafts)
        outputs = self.output_masses(before[first], targets[first], drafts[first])
        for place, number in enumerate(first):
            coupling = Coupling.of(before[number], drafts[number, :, -1], exact_values(outputs[place]))
            yield np.flatnonzero(which == place), coupling

    def output_masses(self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> np.ndarray:
        """Compute P(the output keeps i tokens of path k and continues with w | D'), [N, K, L, V]."""
        # The rows at depth L belong to other last tokens.  The base does not use them, so any law will do.
        targets = np.concatenate([targets[:, :, :-1], targets[:, :, -2:-1]], axis=2)
        last = [_last_tokens(rows) for rows in drafts[:, :, -1]]
        counts = [len(some) for some in last]
        drawn = np.repeat(np.arange(len(tokens)), counts)
        every = tokens[drawn]
        every[..., -1] = np.concatenate(last)
        rows = np.take_along_axis(drafts[drawn, :, -1], every[..., -1:], axis=-1)
        masses = np.prod(rows, axis=1)[..., None, None] * self._masses(every, targets[drawn], drafts[drawn])
        return np.add.reduceat(masses, np.cumsum([0, *counts[:-1]]), axis=0)

    def _masses(self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> np.ndarray:
        """Compute P(the output keeps i tokens of path k and continues with w | drafts), [N, K, L, V].

        A prefix that several paths share counts for the first of these paths.
        """
        outcome = self.base.outcome(tokens, targets, drafts)
        masses, holders = zeros_like(drafts), first_path_with_prefix(tokens)[..., -2]
        every = np.arange(len(tokens))
        for path, length in product(range(drafts.shape[1]), range(drafts.shape[2])):
            stops = outcome.stop_probs[:, path, length, None]
            rows = outcome.correction(every * 0 + path, every * 0 + length)
            masses[:, path, length] += stops * np.where(stops == 0, stops, rows)
        for path in range(drafts.shape[1]):
            masses[every, holders[:, path], -1, tokens[:, path, -1]] += outcome.stop_probs[:, path, -1]
        return masses


class Coupling(NamedTuple):
    """A coupling of a verifier's output with the last drafted tokens, given the tokens before them.

    A slot (k, w) is the node of depth L-1 on path k and a last token w.

    Attributes:
        holders: for each path, the first path with the same node of depth L-1, [K].
        accepted: set of drafted slots -> {slot: probability that it is accepted as a leaf}.
        left: the masses of the outputs that are not accepted leaves, [K, L, V].
    """

    holders: list[int]
    accepted: dict[frozenset[tuple[int, int]], dict[tuple[int, int], Any]]
    left: np.ndarray

    @staticmethod
    def of(before: np.ndarray, draft_rows: np.ndarray, outputs: np.ndarray) -> Coupling:
        """Compute a maximum flow.  Slots are sorted by tokens, so that the order of paths does not matter."""
        holders, rows = first_path_with_prefix(before)[:, -2].tolist(), exact_values(draft_rows)
        drawn: defaultdict[frozenset[tuple[int, int]], Any] = defaultdict(int)
        for tokens in _last_tokens(draft_rows).tolist():
            drawn[frozenset(zip(holders, tokens, strict=True))] += prod(map(getitem, rows, tokens))

        def text(slot: tuple[int, int]) -> tuple[int, ...]:
            return (*before[slot[0], :-1].tolist(), slot[1])

        slots = sorted(((k, w) for k, _, w in zip(*np.nonzero(outputs[:, -1:]), strict=True)), key=text)
        sets = sorted(drawn, key=lambda some: sorted(map(text, some)))
        edges = [(x, y) for x, slot in enumerate(slots) for y, some in enumerate(sets) if slot in some]
        flow = largest_coupling([outputs[k, -1, w] for k, w in slots], [drawn[some] for some in sets], edges)
        accepted: dict[frozenset[tuple[int, int]], dict[tuple[int, int], Any]] = {some: {} for some in sets}
        for (x, y), mass in flow.items():
            accepted[sets[y]][slots[x]] = mass / drawn[sets[y]]
            outputs[slots[x][0], -1, slots[x][1]] -= mass
        return Coupling(holders, accepted, outputs)

    def stop_probs(self, tokens: np.ndarray) -> np.ndarray:
        """Compute the stop probabilities given the last tokens, [K, L+1]."""
        drawn = list(zip(self.holders, tokens.tolist(), strict=True))
        if frozenset(drawn) not in self.accepted:
            raise InvalidInputError(
                f"expected last tokens that the draft rows can draw, got {tokens.tolist()}"
            )
        accepted, total = self.accepted[frozenset(drawn)], self.left.sum()
        rest = 1 - sum(accepted.values())
        stops = self.left.sum(axis=-1) * (rest / total if total else 0)
        leaves = np.full((len(drawn), 1), 0, dtype=object)
        for slot, chance in accepted.items():
            leaves[drawn.index(slot)] = chance
        return np.concatenate([stops, leaves], axis=1)


def _last_tokens(draft_rows: np.ndarray) -> np.ndarray:
    """List all tuples of tokens that the rows [K, V] can draw, [n, K].

    Raises:
        EnumerationTooLargeError: there are more than ``MAX_LAST_TOKENS``.
    """
    supports = [np.flatnonzero(row) for row in draft_rows]
    count = prod(map(len, supports))
    if count > MAX_LAST_TOKENS:
        raise EnumerationTooLargeError(
            f"a recoupled verifier enumerates all tuples of last tokens, here {count} and at most "
            f"{MAX_LAST_TOKENS}; draft fewer paths or restrict the vocabulary"
        )
    return np.array(list(product(*supports)))


def _on_host(array: Array) -> np.ndarray:
    """Convert an array to numpy: floats become float64; rationals and integers stay."""
    if isinstance(array, np.ndarray):
        return array if is_exact(array) or array.dtype.kind == "i" else array.astype(float)
    return array.cpu().numpy() if not array.is_floating_point() else array.double().cpu().numpy()
