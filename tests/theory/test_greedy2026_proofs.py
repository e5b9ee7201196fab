"""Lemmas and identities of the appendices of greedy2026, each on its own."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from counted import counted
from spectheory import instances, output_law, verifiers
from spectheory.exact.law import OutputLaw
from spectheory.optima import antichains
from spectheory.optima.bounds import is_skewed_draft
from spectheory.pairs.contexts import context_number, numbered_context
from spectheory.pairs.drafts import Iid
from spectheory.pairs.instances import random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.verification.resolve import resolve
from transport_feasibility import transport_feasibility

ZERO, ONE = Fraction(0), Fraction(1)
Path = tuple[int, ...]


def all_tuples(pair: ModelPair, num_drafts: int) -> list[tuple[tuple[Path, ...], Fraction]]:
    """Every tuple of drafted paths with its probability."""
    found = []
    for leaves, probs in Iid(num_drafts).tuples(pair, 10_000):
        for tuple_leaves, prob in zip(leaves, probs, strict=True):
            paths = tuple(
                numbered_context(int(leaf), pair.draft_length, pair.vocab_size) for leaf in tuple_leaves
            )
            found.append((paths, Fraction(prob)))
    return found


def outputs_given(name: str, pair: ModelPair, paths: tuple[Path, ...]) -> dict[tuple[Path, int], Fraction]:
    """π(prefix, token | paths) of a verifier, the prefix as tokens."""
    problem = resolve(verifiers[name], pair, len(paths))
    L, V = pair.draft_length, pair.vocab_size
    target, draft = (
        np.array(
            [[levels[depth][context_number(path[:depth], V)] for depth in range(count)] for path in paths],
            dtype=object,
        )[None]
        for levels, count in ((problem.pair.target, L + 1), (problem.pair.draft, L))
    )
    outcome = problem.verifier.outcome(np.array([paths]), target, draft)
    law: dict[tuple[Path, int], Fraction] = {}
    for k, depth in product(range(len(paths)), range(L + 1)):
        stop = outcome.stop_probs[0, k, depth]
        if stop:
            row = outcome.correction(np.array([k]), np.array([depth]))[0]
            for token in range(V):
                key = paths[k][:depth], token
                law[key] = law.get(key, ZERO) + Fraction(stop) * Fraction(row[token])
    return law


@counted
def test_every_verifier_is_a_selection_and_a_one_path_verifier() -> Iterator[None]:
    """Lemma 4.4, constructed: π_3 of Eq. 71 and π_5 averaged over the other drafts.

    The selected path has a law that Lemma 4.5 allows, the output has the verifier's law, it starts with a
    prefix of the selected path, and it is lossless against the selected path's law.
    """
    for name, number in product(("multi_round", "greedy_multipath", "token"), range(8)):
        pair = random_rational([261, number], 2, 1 + number % 2)
        law = output_law(name, pair, 2)
        selected = dict.fromkeys(product(range(2), repeat=pair.draft_length), ZERO)
        joint: dict[tuple[Path, Path], Fraction] = {}
        for paths, prob in all_tuples(pair, 2):
            chosen = ZERO
            for (prefix, token), mass in outputs_given(name, pair, paths).items():
                carriers = [path for path in paths if path[: len(prefix)] == prefix]
                for path in carriers:  # 1/m of the mass for each of the m paths with this prefix
                    share = prob * mass / len(carriers)
                    selected[path] += share
                    joint[path, (*prefix, token)] = joint.get((path, (*prefix, token)), ZERO) + share
                    chosen += mass / len(carriers)
            assert chosen == 1
        leaf_law = np.array(list(selected.values()), dtype=object)
        assert is_skewed_draft(pair, leaf_law, 2).is_member
        for depth, masses in enumerate(law.masses, start=1):
            for node, mass in enumerate(masses):
                output = numbered_context(node, depth, 2)
                assert mass == sum(share for (_, out), share in joint.items() if out == output)
        assert all(path[: len(out) - 1] == out[:-1] for path, out in joint)
        for depth, masses in enumerate(law.accepted_masses):  # x(a) ≤ r(a), as Theorem 3.3 asks of one path
            sums = leaf_law.reshape(2**depth, -1).sum(axis=1)
            assert (masses <= sums).all()
        yield


def random_output_law(pair: ModelPair, seed: int) -> list[np.ndarray]:
    """Any law on outputs of 1..L+1 tokens, from a few whole weights."""
    rng = np.random.default_rng([262, seed])
    sizes = [pair.vocab_size**depth for depth in range(1, pair.draft_length + 2)]
    weights = rng.integers(1, 6, size=sum(sizes)) * (rng.random(sum(sizes)) < 0.35)
    if seed % 2:  # a law that accepts little is more often possible
        weights[: sizes[0]] += 4
    weights[0] += 1
    total = int(weights.sum())
    flat = np.array([Fraction(int(weight), total) for weight in weights], dtype=object)
    return np.split(flat, np.cumsum(sizes)[:-1])


@counted
def test_prefix_matching_is_a_condition_on_antichains() -> Iterator[None]:
    """Lemma A.2 by maximum flow.

    A law R can be output of K paths iff Σ below T ≤ f(q(T)) for all antichains.
    """
    verdicts = set()
    for number in range(60):
        pair = random_rational([263, number], 2, 1 + number % 2, zero_probability=0.1)
        masses = random_output_law(pair, number)
        drafts = all_tuples(pair, 2)
        outputs = [
            numbered_context(node, depth, 2)
            for depth in range(1, pair.draft_length + 2)
            for node in range(2**depth)
        ]
        edges = [
            (x, y)
            for x, output in enumerate(outputs)
            for y, (paths, _) in enumerate(drafts)
            if any(path[: len(output) - 1] == output[:-1] for path in paths)
        ]
        flat = list(np.concatenate(masses))
        feasible = transport_feasibility(flat, [prob for _, prob in drafts], edges).is_feasible
        nodes = [
            numbered_context(node, depth, 2)
            for depth in range(pair.draft_length + 1)
            for node in range(2**depth)
        ]
        by_antichains = True
        for membership in antichains(2, pair.draft_length)[1:]:
            chain = [node for node, member in zip(nodes, membership, strict=True) if member]
            below = [any(len(out) > len(a) and out[: len(a)] == a for a in chain) for out in outputs]
            mass = sum((r for r, inside in zip(flat, below, strict=True) if inside), ZERO)
            by_antichains &= mass <= Iid(2).hit_probability(pair, chain)
        assert feasible == by_antichains
        verdicts.add(feasible)
        yield
    assert verdicts == {True, False}


@counted
def test_identities_between_masses_and_budgets() -> Iterator[None]:
    """Eqs. 31, 44-45 on depths 1..L+1, 47-53 and 55-58, in the corrected forms, on lossless laws."""
    for name, number in product(("block", "multi_round", "greedy_multipath"), range(12)):
        pair = random_rational([264, number], 2 + number % 2, 2)
        law: OutputLaw = output_law(name, pair, 2)
        budgets, total = law.node_budgets, ZERO
        for depth in range(1, pair.draft_length + 2):
            p = pair.target_path_probs(depth)
            above = np.repeat(budgets[depth - 1], pair.vocab_size)
            assert (law.masses[depth - 1] == (above - budgets[depth]) * p).all()  # Eq. 45, also at depth L+1
        assert all(
            budget == 0
            for budget, p in zip(budgets[-1], pair.target_path_probs(pair.draft_length + 1), strict=True)
            if p
        )  # Eq. 31
        for depth in range(pair.draft_length + 1):
            p = pair.target_path_probs(depth)
            below = [
                sum(
                    (level.reshape(len(p), -1)[node].sum() for level in law.masses[depth:]),
                    ZERO,
                )
                for node in range(len(p))
            ]
            assert list(budgets[depth] * p) == below  # Eqs. 47-53
            total += sum(below)
        assert total == law.block_efficiency  # Eqs. 55-58
        yield


@counted
def test_a_law_with_feasible_budgets_need_not_be_of_a_prefix_matching_verifier() -> Iterator[None]:
    """Theorem 3.3 speaks of laws.

    Fair coins, L = 1; outputs of a verifier that ignores the draft have feasible D.
    """
    pair = instances.uniform_equal(1)
    # Two fresh fair tokens: R = 1/4 on each pair of tokens, the budgets are those of block verification,
    budgets = output_law("block", pair).node_budgets
    assert [list(level) for level in budgets] == [[1], [1, 1], [0, 0, 0, 0]]
    # and the first fresh token differs from the draft with probability 1/2: no prefix of it.
    fresh_differs = sum(Fraction(1, 4) for draft, fresh in product((0, 1), repeat=2) if draft != fresh)
    assert fresh_differs == Fraction(1, 2)
    yield


@counted
def test_block_weights_unrolled() -> Iterator[None]:
    """Eqs. 60-64 and 81-88: D p = w q = min_k p(a_{k+1:}|a_{1:k}) q(a_{1:k}) for block verification."""
    for number in range(30):
        pair = random_rational([265, number], 2 + number % 2, 3)
        law, size = output_law("block", pair), pair.vocab_size
        for depth in range(pair.draft_length + 1):
            p = pair.target_path_probs(depth)
            for node in range(len(p)):
                path = numbered_context(node, depth, size)
                values = []
                for k in range(depth + 1):
                    value = pair.draft_path_probs(k)[context_number(path[:k], size)]
                    for j in range(k, depth):
                        value = value * pair.target[j][context_number(path[:j], size), path[j]]
                    values.append(value)
                assert law.node_budgets[depth][node] * p[node] == min(values) * (p[node] > 0)
                assert law.accepted_masses[depth][node] == min(values)
        yield
