"""Where the time of the decoding loop goes, and its speed against plain decoding in the same run."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from spectheory.decoding.decoded_texts import DecodedText, decode, end_of_sequence
from spectheory.decoding.decoding_settings import DecodingSettings
from spectheory.decoding.loop import PARTS
from spectheory.foundation.results import no_verdict
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import PrefilledPrompts, draft_and_score
from spectheory.models.language_model import encode_prompts
from spectheory.models.sampling import scaled_logits
from spectheory.pairs.drafts import DraftProcess


@dataclass(frozen=True)
class Speed:
    """Wall-clock seconds of one decoding, and what plain decoding took.

    Attributes:
        tokens: decoded, of all texts.
        seconds: by part: ``draft`` (the draft model, its rows and the drawing of paths), ``target`` (its
            calls and rows), ``verification`` (the verifier's answer and the drawing from it), ``other``
            (reading the prompts, and the rest of the loop).
        plain_tokens, plain_seconds: of the target alone on the same prompts, by ``generate`` of transformers.
    """

    tokens: int
    seconds: dict[str, float]
    plain_tokens: int
    plain_seconds: float

    def __bool__(self) -> bool:
        raise no_verdict(self, ".speed_up")

    @property
    def tokens_per_second(self) -> float:
        """Of the decoding loop."""
        return self.tokens / sum(self.seconds.values())

    @property
    def speed_up(self) -> float:
        """Tokens per second of the loop over those of plain decoding."""
        return self.tokens_per_second * self.plain_seconds / self.plain_tokens

    @property
    def shares(self) -> dict[str, float]:
        """Of the parts in the time, 0 to 1."""
        total = sum(self.seconds.values())
        return {part: seconds / total for part, seconds in self.seconds.items()}

    def to_document(self) -> dict[str, Any]:
        """``speed`` in the JSON objects of ``spectheory decode`` and ``simulate``."""
        return {
            "tokens": self.tokens,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
            "plain_tokens_per_second": self.plain_tokens / self.plain_seconds,
            "speed_up": self.speed_up,
        }

    def __str__(self) -> str:
        shares = ", ".join(f"{part} {share:.0%}" for part, share in self.shares.items())
        speed = f"{self.tokens_per_second:.0f} tokens per second"
        return f"{speed}, {self.speed_up:.2f} times plain decoding; {shares}"


class Stopwatch:
    """Seconds by part; the parts follow one another.

    On an accelerator every lap waits for the device, so that a part is not charged with another's work.

    Example:
        >>> watch = Stopwatch(torch.device("cpu"))
        >>> watch("draft")
        >>> watch.seconds["target"], watch.seconds["draft"] > 0
        (0.0, True)
    """

    def __init__(self, device: torch.device) -> None:
        self.seconds, self._device = dict.fromkeys(PARTS, 0.0), device
        self._start = self._now()

    def __call__(self, part: str) -> None:
        now = self._now()
        self.seconds[part] += now - self._start
        self._start = now

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def timed_decode(
    pair: LanguageModelPair,
    prompts: Sequence[str | Sequence[int]],
    verifier: str | Any = "block",
    *,
    plain: tuple[int, float] | None = None,
    **settings: Any,
) -> tuple[list[DecodedText], Speed]:
    """``decode``, its time, and that of plain decoding of the same prompts.

    Args:
        pair: the models, loaded.
        prompts, verifier, settings: as in ``decode``.
        plain: what ``plain_decoding`` returned for these prompts; None: it is called.

    Raises:
        InvalidInputError, InvalidOutcomeError: as ``decode``.
    """
    decode(pair, prompts, verifier, **settings | {"max_new_tokens": 1, "keep": None})  # warm up
    watch = Stopwatch(pair.device)
    texts = decode(pair, prompts, verifier, lap=watch, **settings)
    watch("other")
    if plain is None:
        plain = plain_decoding(pair, prompts, **settings)
    return texts, Speed(sum(len(text.token_ids) for text in texts), watch.seconds, *plain)


def plain_decoding(
    pair: LanguageModelPair,
    prompts: Sequence[str | Sequence[int]],
    **settings: Any,
) -> tuple[int, float]:
    """How many tokens the target writes by itself, and in how many seconds.

    By ``generate`` of transformers with its cache; the settings are those of ``decode``.
    """
    asked_for = DecodingSettings(**settings)
    options, batch_size = asked_for.options or SamplingOptions(), asked_for.batch_size
    asked: dict[str, Any] = {"do_sample": False}
    if options.temperature > 0:
        asked = {
            "do_sample": True, "temperature": options.temperature * pair.temperature,
            "top_k": options.top_k or 0, "top_p": options.top_p or 1.0,
        }  # fmt: skip
    ends = end_of_sequence(pair.target_model)
    encoded = encode_prompts(pair, prompts, 0, asked_for.max_prompt_tokens)
    tokens, watch = 0, Stopwatch(pair.device)
    with torch.random.fork_rng():  # the caller's random numbers are left alone
        for length in (1, asked_for.max_new_tokens):  # once to warm up
            tokens, watch = 0, Stopwatch(pair.device)
            for first in range(0, len(encoded), batch_size):
                batch = encoded[first : first + batch_size]
                width = max(map(len, batch))
                ids = torch.tensor([[0] * (width - len(text)) + text for text in batch], device=pair.device)
                mask = [[0] * (width - len(text)) + [1] * len(text) for text in batch]
                found = pair.target_model.generate(
                    ids, attention_mask=torch.tensor(mask, device=pair.device), max_new_tokens=length,
                    pad_token_id=0, **asked,
                )  # fmt: skip
                tokens += sum(_written(row, ends) for row in found[:, width:].tolist())
            watch("target")
    return tokens, watch.seconds["target"]


def timed_call(
    prefilled: PrefilledPrompts,
    drafts: int | DraftProcess,
    draft_length: int,
    generator: torch.Generator,
    options: SamplingOptions,
) -> tuple[float, float, float]:
    """Seconds of one call of the target that scores no drafts, of drafting, and of scoring the drafts.

    Verification is not among them.

    Args:
        prefilled: the texts behind which the models are called; they stay as they are.
        drafts, draft_length, generator, options: as in ``draft_and_score``.
    """
    pair, watch = prefilled.pair, Stopwatch(prefilled.pair.device)
    nothing = prefilled.texts.token_ids.new_zeros((prefilled.num_prompts, 1, 0))
    with torch.no_grad():
        logits = pair.logits(prefilled.target.follow(prefilled.texts, nothing, first=0))
    torch.softmax(scaled_logits(logits, options, dtype=pair.probs_dtype), dim=-1)
    watch("other")
    draft_and_score(prefilled, drafts, draft_length, generator, options, lap=watch)
    return watch.seconds["other"], watch.seconds["draft"], watch.seconds["target"]


def _written(row: list[int], ends: frozenset[int]) -> int:
    """How many tokens of a row belong to its text, the one that ends it included."""
    return next((place for place, token in enumerate(row, start=1) if token in ends), len(row))
