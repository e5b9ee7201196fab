"""Settings of simulations.  Documents and checkpoints contain their ``record()``."""

# ruff: noqa: RUF009 (settings are fields, made by a function)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.settings import Progress, Settings, setting
from spectheory.foundation.validation import (
    check_callable,
    check_confidence,
    check_count,
    check_draft_length,
    check_kind,
    check_positive,
    check_tolerance,
)
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.drafts.iid import draft_process
from spectheory.simulation.finished_lines import check_place

if TYPE_CHECKING:
    from spectheory.models import Restriction, SamplingOptions

MAX_THREADS = 1_024
MAX_SAMPLES = 10**9
"""Largest number of draws per prompt.  Its Monte Carlo error is far below the rounding of float32 models."""
DRAWS_OF_A_PAIR = 10_000
"""Default number of K-tuples on an enumerated pair: about a second, and an interval of width about 0.03."""


@dataclass(frozen=True, kw_only=True)
class DrawSettings(Settings):
    """Settings shared by all simulations.  For an enumerated pair these are all the settings.

    Attributes:
        drafts: Number K of paths drafted per target call, several such numbers (1,2,4 or 1-4), or a draft
            process.  We estimate each K separately.  A single-path verifier has only one estimate.
        samples: Draws per prompt.
        seed: The same seed gives the same numbers on one device with one number of threads.
        confidence: Level of the intervals.
        tolerance: Largest error, in probability, at which a verifier's answer counts as a law.  The default
            depends on the dtype of the probabilities: ``verification.law_errors.LAW_TOLERANCE``.
        progress: Called with (finished draws, all draws).
    """

    drafts: int | Sequence[int] | DraftProcess = setting(1, record="num_drafts")
    samples: int | None = None
    seed: int = 0
    confidence: float = 0.95
    tolerance: float | None = None
    progress: Progress | None = setting(None, record=None)

    def __post_init__(self) -> None:
        fewest, advice = (1, "") if self.whole_texts else (2, "an interval needs a variance")
        self._check(_check_drafts, "drafts")
        self._check(partial(check_count, at_least=fewest, advice=advice, at_most=MAX_SAMPLES), "samples")
        self._check(partial(check_count, at_least=0), "seed")
        self._check(lambda name, value: check_confidence(value, name), "confidence")
        self._check(check_positive, "tolerance")
        self._check(check_tolerance, "tolerance")
        self._check(check_callable, "progress")

    @property
    def whole_texts(self) -> bool:
        return False

    @property
    def listed_drafts(self) -> tuple[int, ...] | tuple[DraftProcess]:
        """The numbers K, ascending, or a single draft process."""
        return self.drafts if isinstance(self.drafts, tuple) else (self.drafts,)

    @property
    def num_drafts(self) -> int | list[int]:
        found = [draft_process(entry).num_drafts for entry in self.listed_drafts]
        return found[0] if len(found) == 1 else found

    @property
    def samples_per_prompt(self) -> int:
        """The given number of draws per prompt, or its default."""
        return self.samples or (1 if self.whole_texts else 16)

    def record(self) -> dict[str, Any]:
        """Return the settings that determine the numbers, as JSON values.

        Flags are included only if True.
        """
        found: dict[str, Any] = {}
        for entry in fields(self):
            name = entry.metadata.get("record", entry.name)
            if name is None or (entry.metadata.get("texts_only") and not self.whole_texts):
                continue
            value = getattr(self, name)
            if value is not False:
                found[name] = asdict(value) if is_dataclass(value) else value  # type: ignore[arg-type]
        if isinstance(self.drafts, DraftProcess) and not isinstance(self.drafts, Iid):
            found["draft_process"] = self.drafts.text
        return found


@dataclass(frozen=True, kw_only=True)
class SimulationSettings(DrawSettings):
    """Settings of ``simulate``.

    Attributes:
        draft_length: Tokens per drafted path, L.
        samples: Texts per prompt, by default 1.  Without whole texts, draws per prompt, at least 2 (an
            interval needs a variance), by default 16.  On an enumerated pair, drafted K-tuples, by default 10
            000.
        max_new_tokens: Decode whole texts of N tokens after every prompt and estimate the tokens per call
            over all calls.  The intervals then also cover the choice of prompts.  In Python the default is
            None: one call after each prompt.
        common_texts: With whole texts: the target writes them, and all verifiers run on the same drafts at
            each token.  Gains then have narrow intervals and cost one run of the models.  The contexts differ
            from those of a decoding loop.
        against: The verifier with which the others are compared, paired by prompt.  Default: block if it is
            among them, else the first one.
        width: With whole texts: stop when every interval is at most this wide, from lower to upper end.  A
            run stops only after a whole batch and at least 16 prompts.
        gain_width: With whole texts: stop when the interval of every gain is at most this wide.
        options: ``SamplingOptions``: temperature, top-k and top-p of both models.
        restriction: ``Restriction``: keep m tokens per context, so that the pair can also be enumerated.
        batch_size: Number of prompts processed together.
        max_prompt_tokens: Keep at most the last N tokens of every prompt.
        threads: Number of CPU threads.  Default: 1 for small models, otherwise the setting of torch.
        checkpoint: Keep finished batches in this file.  The same run resumes from it.  The file of another
            run is refused: its first line holds models, prompts, verifiers and settings.
        jobs: Number of processes.  Default: one, or the number of the active ``joblib.parallel_config``.  The
            results do not depend on it.
        cluster: The address of a dask scheduler whose workers run the tasks instead of local processes.
    """

    draft_length: int = 8
    samples: int | None = setting(None, record="samples_per_prompt")
    max_new_tokens: int | None = setting(None, texts_only=True)
    common_texts: bool = setting(False, texts_only=True)
    against: str | None = setting(None, record=None)
    width: float | None = setting(None, texts_only=True)
    gain_width: float | None = setting(None, texts_only=True)
    options: SamplingOptions | None = setting(None, record=None)
    restriction: Restriction | None = None
    batch_size: int = 16
    max_prompt_tokens: int | None = None
    threads: int | None = setting(None, record=None)
    checkpoint: str | Path | None = setting(None, record=None)
    jobs: int | None = setting(None, record=None)
    cluster: str | None = setting(None, record=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(check_draft_length, "draft_length")
        self._check(check_count, "max_new_tokens", "batch_size", "max_prompt_tokens", "jobs")
        self._check(partial(check_count, at_most=MAX_THREADS), "threads")
        self._check(check_positive, "width", "gain_width")
        self._check(lambda name, path: check_place(path), "checkpoint")
        self._check(partial(check_kind, kind="SamplingOptions"), "options")
        self._check(partial(check_kind, kind="Restriction"), "restriction")
        for entry in fields(self):
            asked = getattr(self, entry.name) not in (None, False)
            if entry.metadata.get("texts_only") and asked and not self.whole_texts:
                raise InvalidInputError(
                    f"{entry.name} was asked for without whole texts; ask for them with max_new_tokens, "
                    f"or leave {entry.name} out"
                )

    @property
    def whole_texts(self) -> bool:
        """Whether whole texts are decoded.  If False, the run makes one call after each prompt."""
        return self.max_new_tokens is not None

    @property
    def sampling(self) -> SamplingOptions:
        """``options``, or plain sampling if it is None."""
        from spectheory.models import SamplingOptions

        return self.options or SamplingOptions()

    def record(self) -> dict[str, Any]:
        return super().record() | asdict(self.sampling)

    def of_enumerated_pair(self) -> DrawSettings:
        """Keep the settings that apply to an enumerated pair.

        Raises:
            InvalidInputError: a setting that does not apply differs from its default.
        """
        kept = {entry.name: getattr(self, entry.name) for entry in fields(DrawSettings)}
        for entry in fields(self):
            if entry.name not in kept and getattr(self, entry.name) != entry.default:
                raise InvalidInputError(
                    f"{entry.name} is a setting of language models, and the pair is enumerated; leave it out"
                )
        return DrawSettings(**kept | {"samples": self.samples or DRAWS_OF_A_PAIR})


def _check_drafts(name: str, value: Any) -> Any:
    if isinstance(value, DraftProcess):
        return value
    if not isinstance(value, (list, tuple, range)):
        return draft_process(value).num_drafts
    found = sorted({check_count(name, entry) for entry in value})
    if not found or len(found) < len(value):
        raise InvalidInputError(f"{name} must be one number or several different ones, got {value}")
    return tuple(found) if len(found) > 1 else found[0]
