"""Breakpoints of the chords under f: where they lie, what the chords miss, and that refining finds it."""

import numpy as np
import pytest

from spectheory import instances
from spectheory.optima.bounds.dual_scores import ScoreChain
from spectheory.optima.interval.breakpoints import chord_errors, first_breakpoints, refined_breakpoints


def chain_of(seed: int) -> ScoreChain:
    probs = instances.random_float(seed, 5, 3).draft_path_probs(3)
    return ScoreChain.of(np.random.default_rng(seed).random(len(probs)), probs)


@pytest.mark.parametrize("num_drafts", [1, 2, 3, 8])
def test_first_breakpoints_rise_from_0_to_1(num_drafts: int) -> None:
    for count in (1, 2, 7, 64):
        edges = first_breakpoints(count, num_drafts)
        assert (edges[0], edges[-1], len(edges)) == (0, 1, count + 1)
        assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("num_drafts", [2, 3, 8])
def test_errors_add_up_to_what_the_chords_miss(num_drafts: int) -> None:
    """E[max c] under f minus under the chords, each summed set by set in plain Python."""
    edges = first_breakpoints(4, num_drafts)
    for seed in range(5):
        chain = chain_of(seed)
        under_f = under_chords = 0.0
        for mass, drop in zip(chain.draft_mass, chain.drop, strict=True):
            at = min(max(int(np.searchsorted(edges, mass)) - 1, 0), 3)
            low, high = edges[at], edges[at + 1]
            f_low, f_high, f_mass = (1 - (1 - u) ** num_drafts for u in (low, high, min(mass, 1.0)))
            under_f += drop * f_mass
            under_chords += drop * (f_low + (f_high - f_low) * (min(mass, 1.0) - low) / (high - low))
        errors = chord_errors(edges, num_drafts, chain)
        assert (errors >= 0).all()
        assert errors.sum() == pytest.approx(under_f - under_chords, abs=1e-12)
        assert errors.sum() > 1e-4  # four chords miss something
        assert chord_errors(edges, 1, chain).sum() < 1e-15  # f is linear for one draft


@pytest.mark.parametrize("num_drafts", [2, 8])
def test_refining_reaches_the_error_or_the_limit(num_drafts: int) -> None:
    """Old breakpoints stay, the error falls below what is allowed; the number of segments is kept."""
    for seed in range(5):
        chain, edges = chain_of(seed), first_breakpoints(4, num_drafts)
        finer = refined_breakpoints(edges, num_drafts, chain, 1e-9, 1000)
        assert set(edges) <= set(finer)
        assert (np.diff(finer) > 0).all()
        assert chord_errors(finer, num_drafts, chain).sum() <= 1e-9
        few = refined_breakpoints(edges, num_drafts, chain, 0.0, 6)
        assert len(few) - 1 <= 6
        assert chord_errors(few, num_drafts, chain).sum() < chord_errors(edges, num_drafts, chain).sum()
        enough = refined_breakpoints(edges, num_drafts, chain, 1e9, 1000)
        assert enough.tolist() == edges.tolist()


def test_first_breakpoints_are_dense_where_f_bends() -> None:
    """1 - (1 - i/n)^(3/(K+1)), by square roots for K = 5: the first half of f has most of the bends."""
    expected = [0, 1 - 0.75**0.5, 1 - 0.5**0.5, 0.5, 1]
    assert first_breakpoints(4, 5) == pytest.approx(expected)


@pytest.mark.parametrize("more", [1, 2, 3])
def test_refining_never_passes_the_limit(more: int) -> None:
    edges = first_breakpoints(9, 4)
    assert len(refined_breakpoints(edges, 4, chain_of(1), 0.0, 9 + more)) - 1 == 9 + more
