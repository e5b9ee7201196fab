"""Bad arguments to the Python functions: one line that names the argument and says what was received."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from spectheory import acceptance, certify, decode, instances, optimum, output_law
from spectheory.exact.iteration import expected_decoded_tokens
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import standard_suite
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair
from spectheory.optima import (
    fewest_calls,
    lossy_optimum,
    multi_path_optimum,
    on_path_optimum,
    optimal_acceptance_without_replacement,
    optimal_rankings,
    path_selection_optimum,
)
from spectheory.optima.bounds.dual_scores import upper_bound
from spectheory.optima.bounds.lower_bounds import certified_lower_bound
from spectheory.optima.context_free.merged_weights import context_free_path_optimum
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.pairs.drafts import PerPath, PrefixTree
from spectheory.pairs.pair import ModelPair
from spectheory.simulation import simulate
from spectheory.testing import assert_lossless

PAIR = instances.two_token(2)
FLOATS = PAIR.to_float()
LONG = instances.two_token(4)
HALVES = np.full((3, 2), 0.5)


@cache
def models() -> LanguageModelPair:
    return LanguageModelPair.load("bundled", "bundled", device="cpu", weights_now=False)


def simulated(prompts: Any = ("x",), **settings: Any) -> Any:
    return simulate(models(), prompts, ["block"], **settings)


ROW = [Fraction(1, 3), Fraction(2, 3)]

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "certify: no verifier": (lambda: certify(None, PAIR), "None is not a verifier"),
    "certify: a class": (lambda: certify(dict, PAIR), "is not a verifier"),
    "certify: unknown name": (lambda: certify("blok", PAIR), "did you mean 'block'"),
    "certify: no pair": (lambda: certify("block", "pair.json"), "pair"),  # type: ignore[arg-type]
    "certify: pair and verifier swapped": (lambda: certify(PAIR, "block"), ""),  # type: ignore[arg-type]
    "certify: K = 0": (lambda: certify("block", PAIR, 0), "drafts must"),
    "certify: K = 1.0": (lambda: certify("block", PAIR, 1.0), "drafts must"),  # type: ignore[arg-type]
    "certify: K = True": (lambda: certify("block", PAIR, True), "drafts must"),
    "certify: process by name": (lambda: certify("block", PAIR, drafts="iid"), "drafts must"),  # type: ignore[arg-type]
    "certify: too many tuples": (lambda: certify("spectr", PAIR, 3, max_tuples=5), "max_tuples"),
    "certify: tolerance": (lambda: certify("block", FLOATS, tolerance=float("nan")), "tolerance"),
    "certify: tolerance below 0": (lambda: certify("block", FLOATS, tolerance=-1e-9), "tolerance"),
    "law: max_tuples 0": (lambda: output_law("block", PAIR, max_tuples=0), "max_tuples"),
    "optimum: K": (lambda: optimum(PAIR, 0), "drafts must"),
    "optimum: K of text": (lambda: optimum(PAIR, "2"), "drafts must"),  # type: ignore[arg-type]
    "optimum: no pair": (lambda: optimum(None, 2), "pair"),  # type: ignore[arg-type]
    "interval: gap": (lambda: multi_path_interval(PAIR, 2, relative_gap=0), "relative_gap"),
    "interval: time": (lambda: multi_path_interval(PAIR, 2, time_limit=-1), "time_limit"),
    "optimum: antichains": (lambda: multi_path_optimum(LONG, PerPath((LONG, LONG))), "458329 non-empty"),
    "optimum: contexts": (lambda: optimum(instances.two_token(11), 2, relative_gap=0), "more than 2500"),
    "optimum: widths": (lambda: multi_path_optimum(LONG, PrefixTree((2, 1))), "the tree has 2 widths"),
    "selection: leaves": (lambda: path_selection_optimum(instances.two_token(7), 2), "128 leaves"),
    "several calls: length": (
        lambda: fewest_calls(instances.random_rational(1, 2, 2), 4),
        "need a pair of draft length",
    ),
    "lossy: a text": (lambda: lossy_optimum(PAIR, "1e999999999"), "total_variation"),
    "family: none": (lambda: on_path_optimum([], 2), "one vocabulary size"),
    "family: size": (lambda: on_path_optimum([instances.two_token(5)], 4), "more than 20000 variables"),
    "context-free: not so": (
        lambda: context_free_path_optimum(instances.sticky_chain(2)),
        "not context-free",
    ),
    "rankings: several rows": (lambda: optimal_rankings(HALVES, HALVES, 2), "one numpy row"),
    "distinct drafts: too many": (
        lambda: optimal_acceptance_without_replacement(ROW, ROW, 3),
        "at most the 2 tokens",
    ),
    "acceptance: lengths": (lambda: acceptance(ROW, [1], 2), ""),
    "acceptance: K": (lambda: acceptance(ROW, ROW, -2), "drafts"),
    "acceptance: negative": (lambda: acceptance([Fraction(4, 3), Fraction(-1, 3)], ROW, 2), "negative"),
    "acceptance: sum": (lambda: acceptance([0.5, 0.6], [0.5, 0.5], 2), "sum"),
    "acceptance: mixed": (lambda: acceptance(ROW, [0.5, 0.5], 2), ""),
    "acceptance: nan": (lambda: acceptance([float("nan"), 1.0], [0.5, 0.5], 2), ""),
    "acceptance: float32": (
        lambda: acceptance(np.float32([1 / 3, 2 / 3]), np.float32([2 / 3, 1 / 3]), 2),
        "divide it by its sum in float64, as normalise=True of ModelPair.context_free_pair does",
    ),
    "instances: seed": (
        lambda: instances.random_float(-1, 2, 2),
        "seed must be a whole number of at least 0",
    ),
    "instances: seeds": (lambda: instances.random_rational([1, -1], 2, 2), "got [1, -1]"),
    "instances: half": (lambda: instances.tiny_probabilities(0.5, 2, 2), "got 0.5"),  # type: ignore[arg-type]
    "instances: no seed": (lambda: instances.random_float(None, 2, 2), "got None"),  # type: ignore[arg-type]
    "instances: share": (
        lambda: instances.random_rational(0, 2, 2, zero_probability=-1),
        "zero_probability must lie in [0, 1], got -1",
    ),
    "instances: agreement": (
        lambda: instances.random_float(0, 2, 2, agreement="0.5"),  # type: ignore[arg-type]
        "agreement must lie in [0, 1], got '0.5'",
    ),
    "upper bound: depths": (lambda: upper_bound(PAIR, 2, []), ""),
    "lower bound: shape": (lambda: certified_lower_bound(PAIR, 2, np.ones(3) / 3), "shape"),
    "lower bound: nan": (lambda: certified_lower_bound(PAIR, 2, np.full(4, np.nan)), "skewed_draft"),
    "decoded: iterations": (lambda: expected_decoded_tokens("block", PAIR, 0), ""),
    "Monte Carlo: samples": (lambda: simulate(PAIR, verifiers=["block"], samples=0), "samples"),
    "Monte Carlo: seed": (lambda: simulate(PAIR, verifiers=["block"], seed=-1), "seed"),
    "Monte Carlo: confidence": (lambda: simulate(PAIR, verifiers=["block"], confidence=1), "confidence"),
    "Monte Carlo: nobody": (lambda: simulate(PAIR, verifiers=[]), "verifier"),
    "Monte Carlo: twice": (lambda: simulate(PAIR, verifiers=["block", "block"]), "block"),
    "models: two drafts": (
        lambda: LanguageModelPair.load("bundled", ["bundled", "bundled"]),  # type: ignore[arg-type]
        "the draft must be one model or a name, got ['bundled', 'bundled']",
    ),
    "decode: a tensor": (
        lambda: decode(models(), torch.tensor([[1, 2]])),
        "list of at least one prompt, got tensor",
    ),  # type: ignore[arg-type]
    "decode: an array": (
        lambda: decode(models(), np.array([[1, 2]])),
        "list of at least one prompt, got array",
    ),  # type: ignore[arg-type]
    "decode: options": (
        lambda: decode(models(), ["x"], options={"temperature": 1}),
        "class SamplingOptions, got {'",
    ),
    "decode: keep": (lambda: decode(models(), ["x"], keep=[]), "keep must be a function, got []"),
    "simulate: no prompts": (lambda: simulated(prompts=None), "list of at least one prompt, got None"),
    "simulate: checkpoint": (lambda: simulated(checkpoint=3), "checkpoint must be a path, got 3"),
    "simulate: NUL": (lambda: simulated(checkpoint="a\0b"), "checkpoint must be a path, got 'a\\x00b'"),
    "simulate: options": (
        lambda: simulated(options={"temperature": 1}),
        "options must be of the class Sampl",
    ),
    "simulate: restriction": (lambda: simulated(restriction=3), "must be of the class Restriction, got 3"),
    "simulate: progress": (lambda: simulated(progress=3), "progress must be a function, got 3"),
    "simulate: confidence": (lambda: simulated(confidence="0.9"), "between 0 and 1, got '0.9'"),
    "suite: no verifier": (lambda: certify_suite(3), "3 is not a verifier"),
    "suite: empty": (lambda: certify_suite("block", []), "no case of the suite"),
    "suite: unknown drafts": (lambda: standard_suite(["forest"]), "forest"),
    "assert_lossless: unknown": (lambda: assert_lossless("blok"), "did you mean 'block'"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_arguments(name: str) -> None:
    call, says = CASES[name]
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert 0 < len(str(caught.value)) < 600


def test_partner_advice_that_is_followed_helps() -> None:
    rows = [np.float32([1 / 3, 2 / 3]), np.float32([2 / 3, 1 / 3])]
    divided = [row.astype(float) / row.astype(float).sum() for row in rows]
    assert acceptance(*divided, 2).optimal == pytest.approx(8 / 9)
    pair = ModelPair.context_free_pair(*rows, 1, normalise=True)
    assert [pair.target[0][0].tolist(), pair.draft[0][0].tolist()] == [row.tolist() for row in divided]


@pytest.mark.parametrize("seed", [3, [1, 2], np.random.SeedSequence(5)], ids=str)
def test_partner_seeds_that_numpy_takes(seed: Any) -> None:
    """They give what they gave before: numpy's own generator."""
    pair = instances.random_float(seed, 2, 1)
    assert (pair.target[0] == np.random.default_rng(seed).dirichlet(np.ones(2), size=1)).all()
