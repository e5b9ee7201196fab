"""Compiled verifiers: one graph, the same outcomes and samples, and what breaks a graph is seen."""

import shutil
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch
from warnings import filterwarnings

import numpy as np
import pytest
import torch

from deep import first_is_quick
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.verification import compilation
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.compilation import Compiled
from torch_support import drafted, on_device

GIVEN = drafted(instances.random_float(7, 3, 2), 2, batch=5, seed=1)
ROUND = ("token", "block", "multi_round")


@pytest.fixture(autouse=True)
def no_graphs_before() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def one_round(verifier: Any) -> Any:
    """Outcome and sample as one function of tensors; the uniform numbers are drawn outside of a graph."""

    def run(uniform: list[Any], *given: Any) -> tuple[Any, ...]:
        outcome = verifier.outcome(*given)
        sample = outcome.sample(list(uniform))
        return outcome.stop_probs, sample.path_index, sample.length, sample.token

    return run


UNIFORM = [torch.tensor([[0.1], [0.3], [0.5], [0.7], [0.9]], dtype=torch.float64) for _ in range(2)]


@first_is_quick("name", ROUND)
def test_a_round_is_one_graph(name: str) -> None:
    """No break between the rows and the token: the same numbers as without a graph."""
    given = on_device(GIVEN, "cpu")
    graph = torch.compile(one_round(verifiers[name]), backend="eager", fullgraph=True)
    for found, expected in zip(
        graph(UNIFORM, *given), one_round(verifiers[name])(UNIFORM, *given), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-15)


class Looks(Token):
    """Breaks the graph: looks at a number."""

    def acceptance(self, weight: Any, residual_mass: Any) -> Any:
        return super().acceptance(weight, residual_mass) * (1.0 if bool((weight >= 0).all()) else 0.0)


def test_partner_a_look_at_a_number_breaks_the_graph() -> None:
    given = on_device(GIVEN, "cpu")
    one_round(Looks())(UNIFORM, *given)
    with pytest.raises(Exception, match="data-dependent"):
        torch.compile(one_round(Looks()), backend="eager", fullgraph=True)(UNIFORM, *given)
    with pytest.raises(Exception, match="data-dependent"):
        Looks().compiled(backend="eager").outcome(*given)
    with pytest.raises(Exception, match="data-dependent"):
        Compiled(Looks(), Looks(), {"backend": "eager"}).outcome(*given).sample(list(UNIFORM))


def test_any_number_of_verifiers_are_compiled() -> None:
    """torch keeps no more graphs per code object than its limit, here 1: no two verifiers share one."""
    given = on_device(GIVEN, "cpu")
    with patch.object(torch._dynamo.config, "recompile_limit", 1):
        for _ in range(3):
            verifiers["token"].compiled(backend="eager").outcome(*given).length_probs()


def assert_same(name: str, backend: str, tolerance: float) -> None:
    given = on_device(GIVEN, "cpu")
    compiled = verifiers[name].compiled(backend=backend)
    found, expected = compiled.outcome(*given), verifiers[name].outcome(*given)
    for stops_are_there in (False, True):
        assert ("stop_probs" in vars(found)) == stops_are_there
        one, other = (outcome.sample(torch.Generator().manual_seed(2)) for outcome in (found, expected))
        for field in ("path_index", "length", "token"):
            assert torch.equal(getattr(one, field), getattr(other, field))
    torch.testing.assert_close(found.stop_probs, expected.stop_probs, rtol=0, atol=tolerance)
    again = verifiers[name].compiled(backend=backend).outcome(*given)
    torch.testing.assert_close(again.stop_probs, found.stop_probs, rtol=0, atol=tolerance)
    rows = [outcome.correction(one.path_index, one.length) for outcome in (found, expected)]
    torch.testing.assert_close(*rows, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "name",
    ["token", *(pytest.param(name, marks=pytest.mark.deep) for name in ("multi_round", "greedy_multipath"))],
)
def test_compiled_verifiers_are_the_same(name: str) -> None:
    assert_same(name, "eager", 1e-15)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch's inductor needs a C++ compiler on the CPU")
@pytest.mark.deep
def test_inductor_gives_the_same() -> None:
    assert_same("token", "inductor", 1e-12)


def test_what_is_declared_and_what_is_not_torch_goes_through() -> None:
    """Attributes and bind; on numpy and rationals it is the verifier itself, law and all."""
    wrapped = verifiers["greedy_block"].compiled()
    assert (wrapped.name, wrapped.single_path, wrapped.lossless) == ("greedy_block", True, False)
    pair = instances.two_token(2)
    assert (
        output_law(verifiers["spectr"].compiled(), pair, 2).block_efficiency
        == output_law("spectr", pair, 2).block_efficiency
    )
    assert output_law(verifiers["block"].compiled(), pair, 1).block_efficiency.numerator == 20
    np.testing.assert_array_equal(
        wrapped.outcome(*GIVEN).stop_probs, verifiers["greedy_block"].outcome(*GIVEN).stop_probs
    )


class WithoutMass(Token):
    """Known to be wrong: stops where no token is left."""

    def residual(self, weight: Any, rows: Any) -> Any:
        return 0 * rows.target_row


def test_a_row_without_mass_is_refused_from_a_graph_too() -> None:
    """The same error as without one, of a user's own object, whose rows are checked too."""
    given = on_device(GIVEN, "cpu")
    own = WithoutMass()
    for verifier in (own.compiled(backend="eager"), Compiled(own, own, {"backend": "eager"})):
        outcome = verifier.outcome(*given)
        with pytest.raises(InvalidOutcomeError, match="without mass"):
            outcome.sample(torch.Generator().manual_seed(1))


def test_warnings_are_looked_after_once_per_kind_of_rows() -> None:
    """A round that was traced already does not change the filters; rows of another kind are traced anew."""
    given, verifier, generator = (
        on_device(GIVEN, "cpu"),
        verifiers["token"].compiled(backend="eager"),
        torch.Generator(),
    )
    with patch.object(compilation, "filterwarnings", wraps=filterwarnings) as filters:
        for rows, expected in ((given, 1), (given, 1), (tuple(one[:1] for one in given), 2)):
            verifier.outcome(*rows).sample(generator)
            assert filters.call_count == expected


@pytest.mark.deep
def test_rows_behind_drafts_of_several_lengths() -> None:
    """After a second length the compiler takes lengths for unknown numbers."""
    verifier = verifiers["token"].compiled(backend="eager")
    for length in (1, 2, 3):
        given = on_device(drafted(instances.random_float(7, 3, length), 1, batch=5, seed=1), "cpu")
        stop = torch.zeros(5, dtype=torch.int64), torch.arange(5) % (length + 1)
        found, expected = (each.outcome(*given).correction(*stop) for each in (verifier, verifiers["token"]))
        torch.testing.assert_close(found, expected)
