"""Draft generators: the law of the drafted tokens must be the rows that are reported for them.

A verifier is lossless for the rows that it is given.  A generator that reports other rows than it draws from
makes a lossless verifier wrong, and no test of the verifier alone can show it.
"""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from spectheory.auditing.following.intercept import Journal, intercepted
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.tape.decisions import Tape, all_runs
from spectheory.foundation.arrays import normalise
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.exact_numbers import exact_number
from spectheory.pairs.contexts import context_number, context_text
from spectheory.pairs.pair import ModelPair

REPORTED_TOLERANCE = Fraction(1, 10**5)
"""A total variation of a reported row that rounding can cause."""
WRONG_DRAFTS = "contract", "drafts do not have the law of the rows that are reported for them"
"""The finding where the difference is larger."""
Generator = Callable[[], tuple[list[int], torch.Tensor]]
"""() -> the L drafted tokens and the logits reported for them, [L, V]."""
Reported = tuple[tuple[Fraction, ...], ...]
"""The rows reported for the drafted tokens of a run, [L][V]."""


class Drafted(Shipped):
    """A shipped sampler together with the shipped generator of its drafts.

    The sampler is judged on pairs whose draft is the measured law, and is given the reported rows.

    Args:
        sampler: the verifying half.
        generator_of: makes the generator from the draft model of a pair.
    """

    def __init__(self, sampler: Shipped, generator_of: Callable[[ModelPair], Generator]) -> None:
        super().__init__(sampler.sampler, sampler.signature_name, sampler.name, provenance=sampler.provenance)
        self.note, self.is_of_another_file = sampler.note, sampler.is_of_another_file
        self.generator_of = generator_of

    def prepared(self, pair: ModelPair) -> tuple[Shipped, ModelPair]:
        """A sampler that is given the reported rows, and the pair with the measured drafts."""
        law, reported = measured(self.generator_of(pair), pair, self.journal)
        told = copy.copy(self)
        told.reported = reported
        return told, ModelPair(pair.target, law, pair.vocab)


def measured(
    generate: Generator, pair: ModelPair, journal: Journal
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The exact rows of the drafted tokens, and the reported rows, [V^i, V] for i < L.

    At a context that is never drafted both are the pair's row.
    """

    def run(tape: Tape) -> tuple[tuple[int, ...], Reported]:
        with intercepted(tape, journal):
            tokens, logits = generate()
        if len(tokens) != pair.draft_length:
            raise InvalidOutcomeError(
                f"the generator drafted {len(tokens)} tokens, expected {pair.draft_length}"
            )
        rows = logits.double().softmax(-1).tolist()
        return tuple(tokens), tuple(tuple(map(exact_number, row)) for row in rows)

    return laws_of_drafts([(result, mass) for mass, result in all_runs(run)], pair.draft, journal)


def laws_of_drafts(
    runs: Iterable[tuple[tuple[tuple[int, ...], Reported], Fraction]],
    levels: Sequence[np.ndarray],
    journal: Journal,
    within: Fraction = Fraction(0),
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The exact rows of drafted tokens, and the reported rows, [V^i, V] for i < L.

    Args:
        runs: the drafted tokens [L] and the reported rows [L][V] of every run, with its probability.
        levels: the rows at contexts that are never drafted.
        journal: receives a finding where a row is not the law of the tokens.
        within: the error of the probabilities of the runs, a total variation.
    """
    size = levels[0].shape[-1]
    masses: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    told: dict[tuple[int, ...], tuple[Fraction, ...]] = {}
    for (tokens, rows), probability in runs:
        for depth, row in enumerate(rows):
            prefix = tokens[:depth]
            masses[tokens[: depth + 1]] += probability
            if told.setdefault(prefix, row) != row:
                raise InvalidOutcomeError(f"the generator reports two rows at '{context_text(prefix)}'")
    law, reported = (tuple(level.copy() for level in levels) for _ in range(2))
    for prefix, row in told.items():
        depth, number = len(prefix), context_number(prefix, size)
        drawn = np.array([masses[(*prefix, token)] for token in range(size)], dtype=object)
        law[depth][number] = normalise(drawn)
        said = np.array(row, dtype=object)
        reported[depth][number] = normalise(said)
        error = REPORTED_TOLERANCE + within / drawn.sum()
        if abs(law[depth][number] - said).sum() / 2 > error:  # negative rows, and other sums
            journal.findings.add(WRONG_DRAFTS)
    return law, reported


def gemma4_assistant(make: Callable[..., Any], pair: ModelPair) -> Generator:
    """The candidate generator of transformers for assistants at one position, with a stand-in assistant.

    The stand-in has the pair's draft rows: its hidden state is the depth and the number of a context.

    Args:
        make: makes a generator of a release from the arguments by name that it has.
        pair: the models.
    """
    config = SimpleNamespace(num_assistant_tokens=pair.draft_length, max_length=1_000, do_sample=True)

    class Gemma4AssistantStandIn:
        generation_config = config
        device = torch.device("cpu")

        def __call__(self, inputs_embeds: torch.Tensor, **options: Any) -> Any:
            token, depth, number = (int(value) for value in inputs_embeds[0, 0])
            number = number * pair.vocab_size + token if depth else 0
            row = torch.tensor(pair.draft[depth][number].astype(float), dtype=torch.float32).log()
            hidden = torch.tensor([[[depth + 1.0, float(number)]]])
            return SimpleNamespace(logits=row[None, None], last_hidden_state=hidden)

    def embeddings(ids: torch.Tensor) -> torch.Tensor:
        return ids[..., None].float()

    def generate() -> tuple[list[int], torch.Tensor]:
        prompt = torch.zeros((1, 1), dtype=torch.long)
        state = SimpleNamespace(hidden_states=[torch.zeros((1, 1, 2))], shared_kv_states={})
        try:
            generator = make(
                input_ids=prompt,
                assistant_model=Gemma4AssistantStandIn(),
                target_model_input_embeddings=embeddings,
                generation_config=config,
                model_kwargs={},
            )
            ids, logits = generator.get_candidates(prompt, {}, state, False, 0)
        except (AttributeError, TypeError) as error:
            raise InvalidInputError(
                f"this release's draft generator asks more of the stand-in assistant: {error}"
            ) from error
        return ids[0, 1:].tolist(), logits[0]

    return generate
