"""Verifiers whose torch code is compiled: the same algorithm, fused into few kernels."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from types import FunctionType
from typing import Any
from warnings import catch_warnings, filterwarnings

from array_api_compat import is_torch_array

from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import NO_MASS, Outcome, Sample, uniform_numbers
from spectheory.verification.user import UserVerifier, as_verifier
from spectheory.verification.verifier import Verifier

_DECLARED = tuple(Verifier.__annotations__)


def compiled(verifier: Verifier, options: dict[str, Any]) -> Verifier:
    """Compile a verifier.  For a user's verifier, compile the user's object and still check its answers."""
    found = as_verifier(verifier)
    if isinstance(found, UserVerifier):
        return UserVerifier(Compiled(found, found.user_object, options))
    return Compiled(found, found, options)


class Compiled(Verifier):
    """A verifier with compiled torch code.  We compile ``traced``: the verifier or a user's object."""

    def __init__(self, verifier: Verifier, traced: Any, options: dict[str, Any]) -> None:
        self.verifier, self.traced, self.options = verifier, traced, options
        for attribute in _DECLARED:
            setattr(self, attribute, getattr(verifier, attribute))

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Verifier:
        return compiled(self.verifier.bind(process, pair), self.options)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        given = (paths, target_rows, draft_rows)
        if not is_torch_array(target_rows):
            return self.traced.outcome(*given)
        return CompiledOutcome(self._graphs, given)

    @cached_property
    def _graphs(self) -> dict[str, Callable[..., Any]]:
        """Map names to compiled functions.  Their last arguments are paths, target rows and draft rows."""
        verifier = self.traced

        def sample(for_stop: Array, for_token: Array, stop_probs: Array, *given: Array) -> tuple[Array, ...]:
            # The graph computes again only the inputs of the correction row, because it drops unused results.
            drawn = replace(verifier.outcome(*given), stop_probs=stop_probs).sample([for_stop, for_token])
            return drawn.path_index, drawn.length, drawn.token

        def stops_and_sample(for_stop: Array, for_token: Array, *given: Array) -> tuple[Array, ...]:
            outcome = verifier.outcome(*given)
            drawn = outcome.sample([for_stop, for_token])
            return outcome.stop_probs, drawn.path_index, drawn.length, drawn.token

        return {
            "stops": self._graph(lambda *given: verifier.outcome(*given).stop_probs),
            "rows": self._graph(lambda stop, *given: verifier.outcome(*given).correction(*stop)),
            "sample": self._graph(sample),
            "stops and sample": self._graph(stops_and_sample),
        }

    def _graph(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        # torch keeps graphs by code object, at most eight: two verifiers must not share one.
        graph = torch.compile(_with_own_code(function), fullgraph=True, **self.options)

        traced: set[tuple[Any, ...]] = set()

        def quietly(*given: Any) -> Any:
            # torch warns while it traces, so later calls with the same kind of input need no filter.
            kind = (given[-1].shape, given[-1].dtype, given[-1].device)
            if kind in traced:
                return graph(*given)
            with catch_warnings():  # traced code looks up the array library through a harmless cache
                filterwarnings("ignore", message="Dynamo detected a call to a `functools.lru_cache`")
                result = graph(*given)
            traced.add(kind)
            return result

        return quietly


def _with_own_code(function: Any) -> FunctionType:
    """Copy a function, with a code object that no other function uses."""
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


class CompiledOutcome(Outcome):
    """An outcome whose graphs run when it is used.  One graph computes stops and a sample together."""

    _graphs: dict[str, Callable[..., Any]]
    _given: tuple[Array, ...]

    def __init__(self, graphs: dict[str, Callable[..., Any]], given: tuple[Array, ...]) -> None:
        self.__dict__.update(_graphs=graphs, _given=given, weights=None)
        self.__dict__["correction"] = lambda *stop: graphs["rows"](stop, *given)

    @cached_property
    def stop_probs(self) -> Array:
        return self._graphs["stops"](*self._given)

    def sample(self, generator: Any) -> Sample:
        one_each = self._given[0][..., 0, :]
        uniform = [uniform_numbers(generator, one_each) for _ in ("stop", "token")]
        try:
            if "stop_probs" in self.__dict__:
                return Sample(*self._graphs["sample"](*uniform, self.stop_probs, *self._given))
            self.__dict__["stop_probs"], *drawn = self._graphs["stops and sample"](*uniform, *self._given)
            return Sample(*drawn)
        except RuntimeError as error:  # a graph cannot raise our error class; its assertion has our text
            if NO_MASS not in str(error):
                raise
            raise InvalidOutcomeError(NO_MASS) from error
