"""LanguageModelPair: a target and a draft language model that share one tokenizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count, in_one_line, is_number
from spectheory.models.device import resolve_device, resolve_dtype
from spectheory.models.draft_names import find_draft
from spectheory.models.loading import (
    ModelSource,
    find_model,
    find_tokenizer,
    longest_text,
    shared_vocab_size,
)
from spectheory.models.probing import check_causal, reads_on_from_cache
from spectheory.models.prompts import Prompt, check_text, naming
from spectheory.models.stored_llama import StoredLlama
from spectheory.pairs.drafts import DraftProcess, PerPath
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.process import ALL_PROCESSES
from spectheory.pairs.drafts.users import UserProcess

MAX_NUM_DRAFTS = 10_000
"""Largest number of paths drafted by language models.  Each path holds L + 1 rows of V numbers in memory."""


def draft_process_of_models(drafts: int | DraftProcess) -> DraftProcess:
    """Convert an argument ``drafts`` to a draft process that language models can run.

    Raises:
        InvalidInputError: K is not an integer from 1 to ``MAX_NUM_DRAFTS``, or the process is one of
            enumerated pairs.
    """
    found = draft_process(drafts)
    if found.num_drafts > MAX_NUM_DRAFTS:
        raise InvalidInputError(
            f"drafts must be at most {MAX_NUM_DRAFTS} for language models, got {found.num_drafts}"
        )
    if isinstance(found, UserProcess | PerPath):
        raise InvalidInputError(
            f"draft process {found.name!r} lists its paths for enumerated pairs; language models cannot "
            f"draft by it, but i.i.d. or by {', '.join(sorted(ALL_PROCESSES - {'iid', 'per_path'}))}"
        )
    return found


@dataclass(frozen=True, eq=False, repr=False)
class LanguageModelPair:
    """A target and a draft model, both causal, with a common vocabulary.

    Attributes:
        target_source, draft_source: sources of the models, or the models themselves.
        configs: configurations of target and draft.
        tokenizer: the tokenizer of both models; None if prompts can be token ids only.  That of the bundled
            pair only encodes and decodes.
        device: device on which the models run.
        weights_dtype: dtype of the weights.
        vocab_size: V, the number of token ids that both models score.
        probs_dtype: dtype of all probabilities, float64 or float32.
        temperature: divisor of the logits of both models, see ``tempered``.
    """

    target_source: Any
    draft_source: Any
    configs: tuple[Any, Any]
    tokenizer: Any
    device: torch.device
    weights_dtype: str | torch.dtype
    vocab_size: int
    probs_dtype: torch.dtype = torch.float64
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.probs_dtype not in (torch.float64, torch.float32):
            raise InvalidInputError(
                f"probs_dtype must be torch.float64 or torch.float32, got {self.probs_dtype!r}"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the weights out of a pickle if they can be read again from ``target_source``."""
        read_here = ("models", "_stored", "cached", "without_token") if self.is_found else ()
        return {name: value for name, value in vars(self).items() if name not in read_here}

    @staticmethod
    def load(
        target: str | Path,
        draft: str | Path,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype | None = None,
        probs_dtype: torch.dtype = torch.float64,
        tokenizer: str | Path | None = None,
        weights_now: bool = True,
    ) -> LanguageModelPair:
        """Load a pair in Hugging Face format.

        Args:
            target: a local folder, a GGUF file, a hub name, or ``"bundled"`` for the model shipped here.
            draft: a model like ``target``, with the same tokens, or the name of a draft made from a model,
                such as ``"target:20-layers"`` (see ``draft_names.find_draft``).
            device: ``auto`` (CUDA when there is one), ``cpu``, ``cuda`` or ``cuda:N``.
            dtype: dtype of the weights; by default float32 on a CPU, and the stored dtype on CUDA.
            probs_dtype: dtype of the probabilities; float32 saves memory on a GPU.
            tokenizer: folder or hub name of the common tokenizer; by default the one stored with them.
                If none is stored, prompts must be token ids.
            weights_now: False to read the weights on first use.

        Raises:
            InvalidInputError: a model does not exist, cannot be loaded or is not causal, or there is no such
                device.
            TokenizerMismatchError: target and draft have different tokenizers.

        Example:
            ``pair = LanguageModelPair.load("bundled", "bundled", device="cpu")``
        """
        where = resolve_device(device)
        weights = resolve_dtype(dtype, where)
        found_target = find_model("target", target)
        found_draft = find_draft(draft, found_target)
        configs = found_target.config(), found_draft.config()
        found = find_tokenizer(tokenizer, (found_target, found_draft))
        size = shared_vocab_size(found, *configs)
        pair = LanguageModelPair(found_target, found_draft, configs, found, where, weights, size, probs_dtype)
        if weights_now:
            pair.readers  # noqa: B018 - reads the weights
        return pair

    @staticmethod
    def of(
        target_model: Any,
        draft_model: Any,
        tokenizer: Any = None,
        *,
        probs_dtype: torch.dtype = torch.float64,
    ) -> LanguageModelPair:
        """Build a pair from models in memory, on one device.

        Args:
            target_model, draft_model: causal language models in Hugging Face format.  The draft may also be a
                name as in ``load``: ``"target:20-layers"`` is made from ``target_model``.
            tokenizer: tokenizer of both models; None if prompts are token ids only.
            probs_dtype: as in ``load``.

        Raises:
            InvalidInputError: the models are on different devices, or one looks ahead or is in training mode.
            TokenizerMismatchError: a model does not score every token of the tokenizer.
        """
        source = ModelSource("target", target_model.config.name_or_path, "", local=True)
        placed = target_model.device, target_model.dtype
        draft = draft_model
        if isinstance(draft, str):
            draft = find_draft(draft, source).model(*placed, target_model)
        if not hasattr(draft, "config"):
            raise InvalidInputError(f"the draft must be one model or a name, got {in_one_line(draft)}")
        configs = target_model.config, draft.config
        size = shared_vocab_size(tokenizer, *configs)
        for side, model in (("target", target_model), ("draft", draft)):
            if model.device != target_model.device:
                raise InvalidInputError(
                    f"the target is on {target_model.device} and the draft on {model.device}; move one"
                )
            if model.training:
                raise InvalidInputError(f"the {side} model is in training; call its eval() first")
            check_causal(side, model, size)
        return LanguageModelPair(target_model, draft, configs, tokenizer, *placed, size, probs_dtype)

    @property
    def is_found(self) -> bool:
        """True if the models come from files or the hub, False if they were given in memory."""
        return isinstance(self.target_source, ModelSource)

    @cached_property
    def models(self) -> tuple[Any, Any]:
        """Target and draft model in evaluation mode, read on first use.

        Raises:
            InvalidInputError: weights cannot be loaded, or a model looks ahead.
        """
        if not self.is_found:
            return self.target_source, self.draft_source
        placed = self.device, self.weights_dtype
        target = self.target_source.model(*placed)
        check_causal("target", target, self.vocab_size)
        draft = self.draft_source.model(*placed, target)
        check_causal("draft", draft, self.vocab_size)
        return target, draft

    @property
    def readers(self) -> tuple[Any, Any]:
        """The models that read texts: ``models``; on a CPU, before their use, the bundled ones as stored."""
        sources = self.target_source, self.draft_source
        bundled = all(isinstance(source, ModelSource) and source.is_bundled for source in sources)
        # On another device the rows of both readers have not been compared.
        is_plain = bundled and self.device.type == "cpu" and "models" not in vars(self)
        return self._stored if is_plain else self.models

    @cached_property
    def _stored(self) -> tuple[StoredLlama, StoredLlama]:
        target, draft = self.target_source.location, self.draft_source.location
        placed = self.device, self.weights_dtype
        return StoredLlama(target, *placed), StoredLlama(draft, *placed)

    @property
    def target_model(self) -> Any:
        """The target model, p in the papers."""
        return self.models[0]

    @property
    def draft_model(self) -> Any:
        """The draft model, q in the papers."""
        return self.models[1]

    @property
    def max_positions(self) -> int | None:
        """Length in tokens of the longest text that all models take; None if no model states a limit."""
        return longest_text(*self.configs)

    def tempered(self, temperature: float) -> LanguageModelPair:
        """Return the pair at temperature T: each row of target and draft is softmax(logits / T).

        A row p of this pair becomes p(t)^(1/T) / sum over s of p(s)^(1/T).  Temperatures multiply:
        ``pair.tempered(2).tempered(3)`` has the rows of ``pair.tempered(6)``.  ``restrict``, ``decode`` and
        ``simulate`` treat the tempered models as the models; a temperature in ``SamplingOptions`` applies in
        addition.

        Args:
            temperature: T, above 0; greedy decoding, T = 0, is ``SamplingOptions(temperature=0)``.

        Raises:
            InvalidInputError: T is not a finite number above 0.

        Example:
            >>> pair = LanguageModelPair.load("bundled", "bundled", device="cpu").tempered(2)
            >>> (pair.logits(torch.zeros(pair.vocab_size)) == 0).all(), pair.temperature
            (tensor(True), 2.0)
        """
        if not is_number(temperature) or temperature <= 0:
            raise InvalidInputError(
                f"the temperature of a pair must be a number above 0, got {temperature!r}; greedy decoding "
                "is SamplingOptions(temperature=0)"
            )
        changed = replace(self, temperature=self.temperature * float(temperature))
        read = ("models", "_stored")
        vars(changed).update({name: value for name, value in vars(self).items() if name in read})
        return changed

    def __repr__(self) -> str:
        target, draft = (config.name_or_path or config.model_type for config in self.configs)
        tokens = f"{self.vocab_size} tokens{'' if self.tokenizer is not None else ' without a tokenizer'}"
        return f"<{type(self).__name__}: target {target}, draft {draft}; {tokens}, {self.device}>"

    def encode(self, prompt: Prompt) -> list[int]:
        """Convert a prompt to token ids.  An empty text becomes the beginning-of-text token.

        Raises:
            InvalidInputError: the prompt is empty or not valid text, or an id is not below V.
        """
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise InvalidInputError(
                    "a prompt is a text, and the models have no tokenizer; give token ids, or tokenizer=..."
                )
            check_text(prompt)
            ids = list(self.tokenizer(prompt)["input_ids"])
            if not ids and self.tokenizer.bos_token_id is not None:
                ids = [self.tokenizer.bos_token_id]
        else:
            ids = [check_count("token id", token, at_least=0) for token in prompt]
        if not ids:
            raise InvalidInputError("a prompt is empty; give at least one token to continue from")
        wrong = [token for token in ids if not 0 <= token < self.vocab_size]
        if wrong:
            raise InvalidInputError(
                f"a prompt has token id {wrong[0]}; expected ids in 0..{self.vocab_size - 1}"
            )
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Convert token ids to text; without a tokenizer, to the ids separated by spaces."""
        if self.tokenizer is None:
            return " ".join(map(str, token_ids))
        return self.tokenizer.decode(list(token_ids))

    def check_length(self, prompt_length: int, draft_length: int, new_tokens: int = 0) -> None:
        """Refuse texts longer than the models were built for; their scores would be meaningless."""
        limit = self.max_positions
        if limit is not None and prompt_length + new_tokens + draft_length > limit:
            text, fewer = f"a prompt of {count_text(prompt_length, 'token')}", ""
            if new_tokens:
                text, fewer = f"{text}, {new_tokens} new tokens", "ask for fewer new tokens, "
            raise InvalidInputError(
                f"{text} and a draft of {draft_length} exceed the models' {limit} positions; {fewer}use a "
                "shorter prompt or draft, or keep the last tokens of every prompt with max_prompt_tokens "
                "(simulate and plan: --max-prompt-tokens)"
            )

    @cached_property
    def cached(self) -> tuple[bool, ...]:
        """Whether target and draft can use a cache.  Without a cache, whole texts are read at every call."""
        sides = zip(("target", "draft"), self.readers, strict=True)
        return tuple(reads_on_from_cache(side, model, self.vocab_size) for side, model in sides)

    @cached_property
    def without_token(self) -> torch.Tensor | None:
        """Ids below V for which the tokenizer has no token, [n]; None if there are none.

        Such ids exist where output layers are padded.  They never occur in a text, so ``logits`` removes
        their mass.
        """
        if self.tokenizer is None:
            return None
        ids = set(range(self.vocab_size)) - set(self.tokenizer.get_vocab().values())
        return torch.tensor(sorted(ids), device=self.device) if ids else None

    def logits(self, scores: torch.Tensor) -> torch.Tensor:
        """Convert scores of a model to logits in float32 or better.  [..., vocabulary] -> [..., V]"""
        scores = scores[..., : self.vocab_size]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        if self.temperature != 1:  # in probs_dtype, so that the quotient is not rounded to float32
            scores = scores.to(self.probs_dtype) / self.temperature
        return scores if self.without_token is None else scores.index_fill(-1, self.without_token, -math.inf)

    @property
    def num_parameters(self) -> int:
        """Number of parameters of all models together.  Shared weights count once."""
        weights = {id(array): array for model in self.readers for array in model.parameters()}
        return sum(array.numel() for array in weights.values())

    def generator(self, seed: int) -> torch.Generator:
        """Make a random generator on the models' device.  Equal seeds give equal drafts on one device."""
        return torch.Generator(device=self.device).manual_seed(seed)


def check_models(pair: Any) -> None:
    """Refuse an argument that is not a LanguageModelPair.

    Raises:
        InvalidInputError: it is something else; the message says how to load a pair.
    """
    if not isinstance(pair, LanguageModelPair):
        raise InvalidInputError(
            f"pair must be two language models, got {type(pair).__name__} {pair!r}; "
            "LanguageModelPair.load(target, draft) loads them"
            + ("" if isinstance(pair, str) else ", and simulate takes a ModelPair too")
        )


def encode_prompts(
    models: LanguageModelPair,
    prompts: Sequence[Prompt],
    draft_length: int,
    max_prompt_tokens: int | None = None,
    new_tokens: int = 0,
) -> list[list[int]]:
    """Convert prompts to token ids and check their lengths.  This needs no weights.

    Args:
        draft_length: L; prompt, new tokens and draft must fit into both models.
        max_prompt_tokens: number of last tokens of each prompt to keep; None keeps all.
        new_tokens: largest number of tokens decoded after a prompt.

    Raises:
        InvalidInputError: there are no prompts, or one is empty, too long or not a text.  The message gives
            its number, from 1, and its first characters.
    """
    if isinstance(prompts, str) or not isinstance(prompts, Sequence) or not prompts:
        raise InvalidInputError(f"expected a list of at least one prompt, got {in_one_line(prompts)}")
    if max_prompt_tokens is not None:
        max_prompt_tokens = check_count("max_prompt_tokens", max_prompt_tokens)

    encoded = []
    for number, prompt in enumerate(prompts, start=1):
        with naming(number, prompt):
            ids = models.encode(prompt)
            encoded.append(ids if max_prompt_tokens is None else ids[-max_prompt_tokens:])
            models.check_length(len(encoded[-1]), draft_length, new_tokens)
    return encoded
