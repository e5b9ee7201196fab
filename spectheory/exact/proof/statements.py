"""What can be proved of a verifier on every pair: for each statement its conditions, and a test at a pair.

==================== ==================================================================================
``lossless``         the completed output has the law of the target
``optimal``          lossless, and no lossless verifier decodes more tokens (one draft, or draft length 1)
``at_least:OTHER``   at least the block efficiency of another verifier; ``OTHER@K`` has K drafts
``prefix_matching``  the node masses that its law asks for satisfy the antichain conditions
``exchangeable``     the law of the output given the drafts does not depend on their order
``single_path``      it depends on the first draft only, and is its law given that draft alone
``completed``        the output has the law of the target if it is completed with the modified target
``law``              the stops and the tokens after them are a law, as every verifier's must be
==================== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.certifying import certificate_of
from spectheory.exact.iteration import completed_law
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import LOSSLESS
from spectheory.foundation.validation import unknown_name
from spectheory.optima.pair_optimum import optimum
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.resolve import Problem, find_verifier
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

CLAIMS = {
    "lossless": "the output has the law of the target",
    "optimal": "the verifier is lossless, and no lossless one has a larger block efficiency",
    "at_least": "the block efficiency is at least that of {other}",
    "prefix_matching": "the node masses satisfy the antichain conditions",
    "exchangeable": "the law of the output does not depend on the order of the drafts",
    "single_path": "the law of the output depends on the first draft only",
    "completed": "completed with the modified target, the output has the law of the target",
    "law": "the stops and the tokens after them are a law",
}
NOT_TARGET = "the output law is not the target's"
WRONG = {
    "lossless": NOT_TARGET,
    "optimal": "the block efficiency is below the optimum",
    "at_least": "the block efficiency is below that of the other verifier",
    "prefix_matching": "an antichain is passed too often",
    "exchangeable": "another order of the drafts changes the law of the output",
    "single_path": "the law of the output is not that for the first draft alone",
    "completed": "completed with the modified target, the output law is not the target's",
}
SAY_LOSSLESS = (LOSSLESS, "optimal")
"""The statements of which a proof says that the verifier is lossless."""


class Subject(NamedTuple):
    """A verifier, as it is given and as it is bound, with the process of its drafts."""

    verifier: Verifier
    process: DraftProcess
    bound: Verifier


class Statement(NamedTuple):
    """A statement about a verifier.

    Attributes:
        name: as above.
        subjects: the verifier with its drafts, and what it is compared with, if anything.
    """

    name: str
    subjects: tuple[Subject, ...]

    @staticmethod
    def of(name: str, verifier: Verifier, process: DraftProcess, draft_length: int) -> Statement:
        """The statement of a name.

        Raises:
            UnknownNameError: there is no such statement, or no such other verifier.
            InvalidInputError: it does not speak of these drafts.
        """
        kind, _, other = name.partition(":")
        if kind not in CLAIMS or bool(other) != (kind == "at_least"):
            raise unknown_name(
                "statement", name, [*CLAIMS], "; at_least is followed by :VERIFIER or :VERIFIER@K"
            )
        compared = []
        if kind == "at_least":
            other, _, count = other.partition("@")
            if count and not count.isdigit():
                raise InvalidInputError(f"at_least:OTHER@K needs a whole number K, got {count!r}")
            compared = [(find_verifier(other), Iid(int(count)) if count else process)]
        elif kind == "single_path":
            compared = [(verifier, process.first_path())]
        elif kind == "exchangeable" and not isinstance(process, Iid):
            raise InvalidInputError(f"exchangeable speaks of i.i.d. drafts, got {process}")
        elif kind == "completed" and verifier.modified_target_rows is None:
            raise InvalidInputError(
                f"verifier {verifier.name!r} has no modified_target_rows; prove that it is lossless"
            )
        elif kind == "optimal" and process.num_drafts > 1 < draft_length:
            raise InvalidInputError(
                f"the optimum has a closed form for one draft and for draft length 1, got "
                f"{process.num_drafts} drafts of length {draft_length}; compare with at_least:OTHER"
            )
        for one, _ in (runs := [(verifier, process), *compared]):
            if not one.exact:
                raise InvalidInputError(
                    f"verifier {one.name!r} computes in float64; a proof needs the numbers that it is given"
                )
        bound = [one.bind(drafts) for one, drafts in runs]
        for one in bound:
            if isinstance(one, UserVerifier) and one.has_own_bind:
                raise InvalidInputError(
                    f"verifier {one.name!r} has a bind of its own, which may return another one for some "
                    "pairs, and a proof speaks of all pairs; prove the verifier that it returns"
                )
        return Statement(name, tuple(Subject(*run, one) for run, one in zip(runs, bound, strict=True)))

    @property
    def kind(self) -> str:
        """The name without what it is compared with."""
        return self.name.partition(":")[0]

    @property
    def claim(self) -> str:
        """The statement in words."""
        kind, _, other = self.name.partition(":")
        return CLAIMS[kind].format(other=other)

    def wrong_at(self, pair: ModelPair) -> str:
        """What is wrong on a pair with rational rows; empty if nothing is.

        Raises:
            InvalidOutcomeError: the verifier fails there, or returns no law.
        """
        kind, (verifier, process, _) = self.kind, self.subjects[0]
        if kind in ("exchangeable", "single_path"):
            mine, other = (_outputs(one, pair) for one in (self.subjects[0], self.subjects[-1]))
            wanted = (key if kind == "single_path" else tuple(sorted(key)) for key in mine)
            same = (
                mine[key] == other[want[:1] if kind == "single_path" else want]
                for key, want in zip(mine, wanted, strict=True)
            )
            return "" if all(same) else WRONG[kind]
        if kind == "prefix_matching":
            found = certificate_of(output_law(verifier, pair, process), 0)
            return "" if found.prefix_matching else WRONG[kind]
        if kind == "completed":
            wanted_law = pair.target_path_probs(pair.draft_length + 1)
            return WRONG[kind] if np.any(completed_law(verifier, pair, process) != wanted_law) else ""
        law = output_law(verifier, pair, process)
        if kind in SAY_LOSSLESS and law.total_variation != 0:
            return NOT_TARGET
        least = law.block_efficiency
        if kind == "optimal":
            least = optimum(pair, process).value
        elif kind == "at_least":
            other_verifier, drafts, _ = self.subjects[1]
            least = output_law(other_verifier, pair, drafts).block_efficiency
        return WRONG[kind] if law.block_efficiency < least else ""


Outputs = dict[tuple[int, ...], dict[tuple[int, ...], Any]]
"""The numbers of the drafted paths -> output -> probability."""


def _outputs(subject: Subject, pair: ModelPair) -> Outputs:
    """The law of the output given each tuple of drafts."""
    _, process, bound = subject
    evaluator = Evaluator.of(Problem(bound, pair, process), process)
    [(leaves, _)] = process.enumerate(pair, 1 << 20)
    outcome, tuples = evaluator.evaluate(leaves, 0)
    found: Outputs = {tuple(some.tolist()): {} for some in leaves}
    for k in range(leaves.shape[1]):
        for depth in range(pair.draft_length + 1):
            rows = outcome.correction(np.full(len(leaves), k), np.full(len(leaves), depth))
            for output, tokens, prob, row in zip(
                found.values(), tuples.tokens[:, k], outcome.stop_probs[:, k, depth], rows, strict=True
            ):
                for token, entry in enumerate(row) if prob else ():
                    key = (*tokens[:depth].tolist(), token)
                    output[key] = output.get(key, 0) + prob * entry
    return {key: {text: mass for text, mass in output.items() if mass} for key, output in found.items()}


def antichains(contexts: Sequence[tuple[int, ...]], below: tuple[int, ...] = ()) -> list[tuple[Any, ...]]:
    """The antichains at or below a context among some contexts, which are closed under prefixes.

    Example:
        >>> antichains([(), (0,), (1,)])
        [(), ((0,),), ((1,),), ((0,), (1,)), ((),)]
    """
    parts: list[tuple[Any, ...]] = [()]
    for child in contexts:
        if child and child[:-1] == below:
            parts = [(*one, *more) for more in antichains(contexts, child) for one in parts]
    return [*parts, (below,)]


def drafts_document(process: DraftProcess) -> dict[str, Any]:
    """A draft process in JSON."""
    widths = {"widths": list(process.widths)} if isinstance(process, (PrefixTree, WithoutReplacement)) else {}
    return {"process": process.name, "num_drafts": process.num_drafts, **widths}
