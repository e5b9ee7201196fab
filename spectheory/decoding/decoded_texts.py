"""decode(): whole texts from language models, by any verifier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.decoding.loop import Iteration, decoding_iterations, refuse_wrong_laws
from spectheory.decoding.processors import LogitsProcessors
from spectheory.decoding.stopping import Stopping
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.models import (
    LanguageModelPair,
    SamplingOptions,
    UnloadedPair,
    check_models,
    encode_prompts,
    prefill,
)
from spectheory.models.drafting import Lap, no_lap
from spectheory.models.prompts import naming
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.resolve import find_verifier


@dataclass
class DecodedText:
    """The text decoded behind one prompt.

    Attributes:
        prompt_ids: token ids of the prompt.
        token_ids: of the text behind it.
        calls: of every call of the target, how many of its tokens the text took.
        accepted: of every call of the target, how many drafted tokens were accepted.
        finished: why the text ends.
    """

    prompt_ids: list[int]
    token_ids: list[int]
    calls: list[int]
    accepted: list[int]
    finished: str

    @property
    def tokens_per_call(self) -> float:
        """Decoded tokens per call of the target; a last call that is cut off counts in full."""
        return sum(length + 1 for length in self.accepted) / len(self.accepted)

    def to_document(self, decode: Callable[[list[int]], str]) -> dict[str, Any]:
        """One entry of ``texts`` in the JSON object of ``spectheory generate --json``."""
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
        """The text as runs of token ids, each with whether they were drafted and accepted."""
        runs, start = [], 0
        for count, accepted in zip(self.calls, self.accepted, strict=True):
            tokens = self.token_ids[start : start + count]
            runs += [(tokens[:accepted], True), (tokens[accepted:], False)]
            start += count
        return [(tokens, drafted) for tokens, drafted in runs if tokens]


def decode(
    pair: LanguageModelPair | UnloadedPair,
    prompts: Sequence[str | Sequence[int]],
    verifier: str | Any = "block",
    *,
    drafts: int | DraftProcess = 1,
    draft_length: int = 8,
    max_new_tokens: int = 128,
    options: SamplingOptions | None = None,
    processors: Sequence[Any] = (),
    stop_strings: Sequence[str] = (),
    stop_at_end_of_sequence: bool = True,
    seed: int = 0,
    batch_size: int = 16,
    max_prompt_tokens: int | None = None,
    watch: Callable[[int, Iteration], None] | None = None,
    lap: Lap = no_lap,
) -> list[DecodedText]:
    """Decode a text behind every prompt.

    With a lossless verifier the texts follow the target's own law.

    Args:
        prompts: texts or token ids.
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        drafts: K paths drafted i.i.d., or a draft process; of several draft models the first K draft a path
            each.
        draft_length: L.
        max_new_tokens: the longest text; prompt, text and a draft must fit into both models.
        options: temperature (0 is greedy), top-k and top-p of both models.
        processors: transformers' logits processors, or functions of (token ids [N, n], scores [N, V]),
            applied to both models before ``options``.
        stop_strings: texts end behind the token that completes one of them.
        stop_at_end_of_sequence: whether texts end at the end-of-sequence tokens of the target.
        seed: the same seed gives the same texts on one device.
        batch_size: prompts decoded at a time.
        max_prompt_tokens: keep at most so many tokens of a prompt, its last ones; None keeps all.
        watch: called with (number of the batch's first prompt, iteration) after every call of the target.
        lap: called with the part of an iteration that has just ended, see ``iterations``.

    Raises:
        InvalidInputError: an argument is out of range, a prompt cannot be read on from, or the verifier is
            not valid for the draft process.
        InvalidOutcomeError: the answer of a user's verifier is not a law where it was drawn from.

    Example:
        >>> from spectheory.models import LanguageModelPair
        >>> pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
        >>> (text,) = decode(pair, ["import os"], "block", max_new_tokens=5, options=SamplingOptions(0))
        >>> pair.decode(text.token_ids)
        '\\n\\ndef _get'
    """
    check_models(pair)
    process = pair.draft_process(drafts)
    bound = find_verifier(verifier).bind(process)
    draft_length, max_new_tokens = (
        check_count("draft_length", draft_length),
        check_count("max_new_tokens", max_new_tokens),
    )
    batch_size, seed = check_count("batch_size", batch_size), check_count("seed", seed, at_least=0)
    process.draws(draft_length)  # refuses a tree of another length
    encoded = encode_prompts(pair, prompts, draft_length, max_prompt_tokens)
    for number, (prompt, ids) in enumerate(zip(prompts, encoded, strict=True), start=1):
        with naming(number, prompt):
            pair.check_length(len(ids) + max_new_tokens, draft_length)
    if stop_strings and pair.tokenizer is None:
        raise InvalidInputError("stop strings were given, and the models have no tokenizer; give token ids")
    loaded = pair.loaded()
    ends = end_of_sequence(loaded.target_model) if stop_at_end_of_sequence else frozenset()
    stopping = Stopping(max_new_tokens, ends, stop_strings, pair.decode)
    decoded: list[DecodedText] = []
    for batch, first in enumerate(range(0, len(encoded), batch_size)):
        chunk = encoded[first : first + batch_size]
        (state,) = np.random.SeedSequence([seed, batch]).generate_state(1)
        recorded = [DecodedText(ids, [], [], [], "") for ids in chunk]
        for iteration in decoding_iterations(
            prefill(loaded, chunk),
            bound,
            process,
            draft_length,
            stopping,
            loaded.generator(int(state)),
            options or SamplingOptions(),
            LogitsProcessors(processors) if processors else None,
            lap,
        ):
            refuse_wrong_laws(bound, iteration)
            record(recorded, iteration)
            if watch is not None:
                watch(first, iteration)
        decoded += recorded
    return decoded


def record(texts: list[DecodedText], iteration: Iteration) -> None:
    """Write one iteration down in the texts of its batch."""
    for place, number in enumerate(iteration.numbers):
        text, tokens = texts[number], iteration.tokens[place]
        text.token_ids.extend(tokens)
        text.calls.append(len(tokens))
        text.accepted.append(iteration.accepted[place])
        reason = iteration.finished[place]
        if reason is not None:
            text.finished = reason


def end_of_sequence(model: Any) -> frozenset[int]:
    """The end-of-sequence token ids of a model."""
    ids = model.generation_config.eos_token_id
    return frozenset(() if ids is None else ids if isinstance(ids, (list, tuple)) else (ids,))
