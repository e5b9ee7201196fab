"""Settings of ``decode``, which the help of ``spectheory decode`` shows without torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from spectheory.foundation.settings import Settings
from spectheory.foundation.validation import check_callable, check_count, check_draft_length, check_kind
from spectheory.pairs.drafts import DraftProcess

if TYPE_CHECKING:
    from spectheory.models import SamplingOptions


@dataclass(frozen=True, kw_only=True)
class DecodingSettings(Settings):
    """The settings of ``decode``.

    Attributes:
        drafts: K paths drafted i.i.d., or a draft process.
        draft_length: Tokens per path, L.
        max_new_tokens: Largest length of a text.  Prompt, text and a draft must fit into both models.
        options: ``SamplingOptions``: temperature (0 is greedy), top-k and top-p of both models.
        seed: The same seed gives the same texts on one device.
        batch_size: Number of prompts decoded together.
        max_prompt_tokens: Keep at most the last N tokens of every prompt.
        keep: called with the texts of each finished batch.
    """

    drafts: int | DraftProcess = 1
    draft_length: int = 8
    max_new_tokens: int = 128
    options: SamplingOptions | None = None
    seed: int = 0
    batch_size: int = 16
    max_prompt_tokens: int | None = None
    keep: Callable[[list[Any]], None] | None = None

    def __post_init__(self) -> None:
        self._check(check_draft_length, "draft_length")
        self._check(check_count, "max_new_tokens", "batch_size", "max_prompt_tokens")
        self._check(partial(check_count, at_least=0), "seed")
        self._check(partial(check_kind, kind="SamplingOptions"), "options")
        self._check(check_callable, "keep")
