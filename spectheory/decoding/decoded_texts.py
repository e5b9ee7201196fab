"""decode(): decode whole texts from language models with any verifier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.decoding.decoding_settings import DecodingSettings
from spectheory.decoding.loop import Iteration, decoding_iterations, refuse_wrong_laws
from spectheory.decoding.stopping import Stopping
from spectheory.foundation.settings import shows_settings
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import prefill
from spectheory.models.language_model import check_models, draft_process_of_models, encode_prompts
from spectheory.verification.resolve import find_verifier


@dataclass
class DecodedText:
    """The text decoded after one prompt.

    Attributes:
        prompt_ids: token ids of the prompt.
        token_ids: token ids of the text, without the prompt.
        calls: number of tokens that each call of the target added to the text.
        accepted: number of drafted tokens accepted in each call, also if the text ended before the last.
        finished: why the text ends, a value of ``stopping.py``.
    """

    prompt_ids: list[int]
    token_ids: list[int]
    calls: list[int]
    accepted: list[int]
    finished: str

    @property
    def tokens_per_call(self) -> float:
        """Decoded tokens per call of the target, with all tokens of the last call even if it was cut off."""
        return sum(length + 1 for length in self.accepted) / len(self.accepted)

    def to_document(self, decode: Callable[[list[int]], str]) -> dict[str, Any]:
        """One entry of ``texts`` in the JSON object of ``spectheory decode --json``."""
        pieces = [{"text": decode(tokens), "accepted": drafted} for tokens, drafted in self.pieces()]
        return {
            "prompt": decode(self.prompt_ids),
            "text": decode(self.token_ids),
            "token_ids": self.token_ids,
            "tokens": len(self.token_ids),
            "calls": len(self.calls),
            "accepted_per_call": self.accepted,
            "tokens_per_call": self.tokens_per_call,
            "finished": self.finished,
            "pieces": pieces,
        }

    def pieces(self) -> list[tuple[list[int], bool]]:
        """Split the text into pieces (token ids, True if they were drafted and accepted)."""
        runs, start = [], 0
        for count, accepted in zip(self.calls, self.accepted, strict=True):
            tokens = self.token_ids[start : start + count]
            runs += [(tokens[:accepted], True), (tokens[accepted:], False)]
            start += count
        return [(tokens, drafted) for tokens, drafted in runs if tokens]


@shows_settings(DecodingSettings)
def decode(
    pair: LanguageModelPair,
    prompts: Sequence[str | Sequence[int]],
    verifier: str | Any = "block",
    **settings: Any,
) -> list[DecodedText]:
    """Decode a text after every prompt.  With a lossless verifier the texts follow the law of the target.

    Every call verifies L tokens.  ``verification.length_rules.WithLengthRule`` verifies fewer by a rule, and
    refuses a rule that would change the law of the texts.

    Args:
        prompts: texts or token ids.
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        settings: as ``DecodingSettings`` describes them.

    Raises:
        InvalidInputError: a setting is out of range, a prompt is invalid, or the verifier does not accept the
            draft process.
        InvalidOutcomeError: a row that we sampled from a user's verifier is not a law.

    Example:
        >>> from spectheory.models import LanguageModelPair
        >>> pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
        >>> (text,) = decode(pair, ["import os"], "block", max_new_tokens=5, options=SamplingOptions(0))
        >>> pair.decode(text.token_ids)
        '\\n\\ndef _get'
    """
    check_models(pair)
    asked = DecodingSettings(**settings)
    process, draft_length = draft_process_of_models(asked.drafts), asked.draft_length
    bound = find_verifier(verifier).bind(process)
    process.draws(draft_length)  # refuses a tree of another length
    encoded = encode_prompts(pair, prompts, draft_length, asked.max_prompt_tokens, asked.max_new_tokens)
    stopping = Stopping(asked.max_new_tokens, end_of_sequence(pair.readers[0]))
    decoded: list[DecodedText] = []
    for batch, first in enumerate(range(0, len(encoded), asked.batch_size)):
        chunk = encoded[first : first + asked.batch_size]
        (state,) = np.random.SeedSequence([asked.seed, batch]).generate_state(1)
        recorded = [DecodedText(ids, [], [], [], "") for ids in chunk]
        for iteration in decoding_iterations(
            prefill(pair, chunk),
            bound,
            process,
            draft_length,
            stopping,
            pair.generator(int(state)),
            asked.options or SamplingOptions(),
        ):
            refuse_wrong_laws(bound, iteration)
            record(recorded, iteration)
        decoded += recorded
        if asked.keep is not None:
            asked.keep(recorded)
    return decoded


def record(texts: list[DecodedText], iteration: Iteration) -> None:
    """Add the tokens of one iteration to the texts of its batch."""
    for place, number in enumerate(iteration.numbers):
        text, tokens = texts[number], iteration.tokens[place]
        text.token_ids.extend(tokens)
        text.calls.append(len(tokens))
        text.accepted.append(iteration.accepted[place])
        reason = iteration.finished[place]
        if reason is not None:
            text.finished = reason


def end_of_sequence(model: Any) -> frozenset[int]:
    """Return the end-of-sequence token ids of a model."""
    ids = model.generation_config.eos_token_id
    return frozenset(() if ids is None else ids if isinstance(ids, (list, tuple)) else (ids,))
