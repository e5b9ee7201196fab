"""Breakpoints 0 = e_0 < e_1 < .. < e_N = 1 of the chords that replace f(u) = 1 - (1 - u)^K."""

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.optima.bounds.dual_scores import ScoreChain


def first_breakpoints(num_segments: int, num_drafts: int) -> np.ndarray:
    """Choose breakpoints with density proportional to |f''(u)|^(1/3).

    This is the best density for chords of width h and error |f''| h³/12, if the chain's drops are even.
    """
    steps = np.arange(num_segments) / num_segments
    return np.append(-np.expm1(3.0 / (num_drafts + 1.0) * np.log1p(-steps)), 1.0)  # distinct for any K


def chord_errors(edges: np.ndarray, num_drafts: int, chain: ScoreChain) -> np.ndarray:
    """Compute the error of the chords at every set of a chain: (c_i - c_{i+1}) (f - chord)(q(S_i)), [sets].

    Its sum is the value of the upper bound with f minus the value with the chords.
    """
    true = hit_probability(chain.draft_mass, num_drafts)
    chords = np.interp(chain.draft_mass, edges, hit_probability(edges, num_drafts))
    return chain.drop * np.maximum(true - chords, 0.0)


def refined_breakpoints(
    edges: np.ndarray, num_drafts: int, chain: ScoreChain, allowed_error: float, most_segments: int
) -> np.ndarray:
    """Add breakpoints until a chain's error is at most ``allowed_error``, or ``most_segments`` is reached.

    Every round splits the sixteenth of the segments with the largest errors.  If one set has more than 0.3 of
    the segment's error, we split there, because the error at a breakpoint is 0.  Otherwise we split where
    half of the error lies on each side.  The cost of a step grows with the square of the number of segments,
    so a round splits only a few.
    """
    while len(edges) - 1 < most_segments:
        errors = chord_errors(edges, num_drafts, chain)
        if errors.sum() <= allowed_error:
            break
        count = len(edges) - 1
        segment = np.clip(np.searchsorted(edges, chain.draft_mass, side="left") - 1, 0, count - 1)
        of_segment = np.bincount(segment, errors, minlength=count)
        worst = np.argsort(-of_segment)[: min(most_segments - count, max(1, count // 16))]
        starts = np.searchsorted(segment, np.arange(count + 1))
        added = [
            _split(chain.draft_mass[part], errors[part], 0.3 * of_segment[j])
            for j in worst[of_segment[worst] > 0]
            for part in (slice(starts[j], starts[j + 1]),)
        ]
        wider = np.unique(np.concatenate([edges, added]))
        if len(wider) == len(edges):
            break
        edges = wider
    return edges


def _split(draft_mass: np.ndarray, errors: np.ndarray, large: float) -> float:
    worst = int(np.argmax(errors))
    if errors[worst] > large:
        return float(draft_mass[worst])
    half = np.cumsum(errors)
    return float(draft_mass[np.searchsorted(half, half[-1] / 2)])
