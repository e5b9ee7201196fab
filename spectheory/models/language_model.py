"""LanguageModelPair: a target and a draft language model with their one tokenizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
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
from spectheory.pairs.drafts import DraftProcess, PerPath
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.process import ALL_PROCESSES
from spectheory.pairs.drafts.users import UserProcess

MAX_NUM_DRAFTS = 10_000
"""The most paths drafted by language models; each has L + 1 rows of the vocabulary."""


def draft_process_of_models(drafts: int | DraftProcess, models: tuple[Any, ...]) -> DraftProcess:
    """The process that an argument ``drafts`` stands for with these draft models, or their names."""
    found = draft_process(drafts)
    if found.num_drafts > MAX_NUM_DRAFTS:
        raise InvalidInputError(
            f"drafts must be at most {MAX_NUM_DRAFTS} for language models, got {found.num_drafts}"
        )
    if len(models) > 1 and not isinstance(drafts, DraftProcess):
        found = PerPath((models * found.num_drafts)[: found.num_drafts])
    if isinstance(found, UserProcess):
        raise InvalidInputError(
            f"draft process {found.name!r} lists its paths for enumerated pairs; language models cannot "
            f"draft by it, but i.i.d. or by {', '.join(sorted(ALL_PROCESSES - {'iid', 'per_path'}))}"
        )
    if isinstance(found, PerPath) != (len(models) > 1):
        raise InvalidInputError(
            f"{found.name!r} drafts were asked for, and the pair has "
            f"{'one draft model' if len(models) == 1 else f'{len(models)} draft models'}; one drafts i.i.d. "
            "or by a tree, and several draft a path each"
        )
    if len(models) > 1 and found.num_drafts > len(models):
        raise InvalidInputError(
            f"drafts must be at most {len(models)}, one path per draft model, got {found.num_drafts}"
        )
    return found


@dataclass(frozen=True, eq=False, repr=False)
class LanguageModelPair:
    """Two causal language models over one vocabulary.

    Attributes:
        target_source, draft_sources: where the models are, or the models themselves; one draft for all paths,
            or one for each.
        configs: of target and drafts.
        tokenizer: the one tokenizer of all; None if prompts are token ids only.
        device: where the models are, or will be.
        weights_dtype: the number type of the weights.
        vocab_size: V, the number of token ids all models score.
        probs_dtype: the number type of all probabilities, float64 or float32.
        temperature: logits of both models are divided by it, see ``tempered``.
    """

    target_source: Any
    draft_sources: tuple[Any, ...]
    configs: tuple[Any, ...]
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
        """Another process reads the weights by itself, unless the models are in memory only."""
        read_here = ("models", "cached", "without_token") if self.is_found else ()
        return {name: value for name, value in vars(self).items() if name not in read_here}

    @staticmethod
    def load(
        target: str | Path,
        draft: str | Path | Sequence[str | Path],
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype | None = None,
        probs_dtype: torch.dtype = torch.float64,
        tokenizer: str | Path | None = None,
    ) -> LanguageModelPair:
        """Load a pair in Hugging Face format.

        Args:
            target: a local folder, a GGUF file, a hub name, or ``"bundled"`` for the model shipped here.
            draft: likewise, over the target's tokens, or made of a model, as ``"target:20-layers"``
                (``draft_names.find_draft``); or several, from each of which one path is drafted.
            device: ``auto`` (CUDA when there is one), ``cpu``, ``cuda`` or ``cuda:N``.
            dtype: number type of the weights; by default float32 on a CPU, as stored on CUDA.
            probs_dtype: number type of the probabilities; float32 saves memory on a GPU.
            tokenizer: of all models, a folder or a hub name; by default the one that lies beside them.  Where
                none does, prompts are token ids.

        Raises:
            InvalidInputError: a model is not there, cannot be loaded or is of another kind, or there is no
                such device.
            TokenizerMismatchError: the two do not share one tokenizer.

        Example:
            ``pair = LanguageModelPair.load("bundled", "bundled", device="cpu")``
        """
        pair = LanguageModelPair.find(
            target, draft, device=device, dtype=dtype, probs_dtype=probs_dtype, tokenizer=tokenizer
        )
        pair.models  # noqa: B018 - reads the weights
        return pair

    @staticmethod
    def find(
        target: str | Path,
        draft: str | Path | Sequence[str | Path],
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype | None = None,
        probs_dtype: torch.dtype = torch.float64,
        tokenizer: str | Path | None = None,
    ) -> LanguageModelPair:
        """Find the models and read all but their weights, which are read on first use.

        Arguments and errors are those of ``load``.
        """
        where = resolve_device(device)
        weights = resolve_dtype(dtype, where)
        found_target = find_model("target", target)
        drafts = tuple(find_draft(name, found_target) for name in _as_list(draft))
        configs = tuple(source.config() for source in (found_target, *drafts))
        found = find_tokenizer(tokenizer, (found_target, *drafts))
        size = shared_vocab_size(found, *configs)
        return LanguageModelPair(found_target, drafts, configs, found, where, weights, size, probs_dtype)

    @staticmethod
    def of(
        target_model: Any,
        draft_model: Any,
        tokenizer: Any = None,
        *,
        probs_dtype: torch.dtype = torch.float64,
    ) -> LanguageModelPair:
        """A pair of models in memory, on one device.

        Args:
            target_model, draft_model: causal language models in Hugging Face format; a list of draft models
                drafts one path from each.  A draft may also be named as in ``load``, so that
                ``"target:20-layers"`` is made of ``target_model``.
            tokenizer: of all; None for prompts of token ids only.
            probs_dtype: as in ``load``.

        Raises:
            InvalidInputError: the models are on two devices, one looks ahead or is in training, or there is
                no draft model.
            TokenizerMismatchError: a model does not score every token of the tokenizer.
        """
        source = ModelSource("target", target_model.config.name_or_path, "", local=True)
        placed = target_model.device, target_model.dtype
        drafts = tuple(
            find_draft(draft, source).model(*placed, target_model) if isinstance(draft, str) else draft
            for draft in _as_list(draft_model)
        )
        configs = tuple(model.config for model in (target_model, *drafts))
        size = shared_vocab_size(tokenizer, *configs)
        for side, model in (("target", target_model), *(("draft", draft) for draft in drafts)):
            if model.device != target_model.device:
                raise InvalidInputError(
                    f"the target is on {target_model.device} and the draft on {model.device}; move one"
                )
            if model.training:
                raise InvalidInputError(f"the {side} model is in training; call its eval() first")
            check_causal(side, model, size)
        return LanguageModelPair(target_model, drafts, configs, tokenizer, *placed, size, probs_dtype)

    @property
    def is_found(self) -> bool:
        """Whether the models were found in files or on the hub; otherwise they are in memory only."""
        return isinstance(self.target_source, ModelSource)

    @cached_property
    def models(self) -> tuple[Any, ...]:
        """Target and drafts in evaluation mode, read on first use.

        Raises:
            InvalidInputError: weights cannot be loaded, or a model looks ahead.
        """
        if not self.is_found:
            return (self.target_source, *self.draft_sources)
        placed = self.device, self.weights_dtype
        target = self.target_source.model(*placed)
        check_causal("target", target, self.vocab_size)
        drafts = tuple(draft.model(*placed, target) for draft in self.draft_sources)
        for draft in drafts:
            check_causal("draft", draft, self.vocab_size)
        return target, *drafts

    @property
    def target_model(self) -> Any:
        """The model to be reproduced (the paper's p)."""
        return self.models[0]

    @property
    def drafts(self) -> tuple[Any, ...]:
        """The models that draft (the paper's q)."""
        return self.models[1:]

    @property
    def draft_model(self) -> Any:
        """The draft model; of several the first."""
        return self.drafts[0]

    @property
    def max_positions(self) -> int | None:
        """The longest text that all models take, in tokens; None when none states a limit."""
        return longest_text(*self.configs)

    def tempered(self, temperature: float) -> LanguageModelPair:
        """The pair at a temperature T: each row is softmax(logits / T), of target and draft alike.

        With p a row of this pair, the row of the result is p(t)^(1/T) / sum over s of p(s)^(1/T).  So
        ``pair.tempered(2).tempered(3)`` has the rows of ``pair.tempered(6)``.  ``restrict``, ``decode`` and
        ``simulate`` then take the tempered models for the models; a temperature in ``SamplingOptions``
        comes on top.

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
        if "models" in vars(self):
            vars(changed)["models"] = self.models
        return changed

    def __repr__(self) -> str:
        target, *drafts = (config.name_or_path or config.model_type for config in self.configs)
        models = f"target {target}, {count_text(len(drafts), 'draft')} {', '.join(drafts)}"
        tokens = f"{self.vocab_size} tokens{'' if self.tokenizer is not None else ' without a tokenizer'}"
        return f"<{type(self).__name__}: {models}; {tokens}, {self.device}>"

    def draft_process(self, drafts: int | DraftProcess) -> DraftProcess:
        """The process that an argument ``drafts`` stands for, as far as these models can draft so.

        Args:
            drafts: K i.i.d. paths, or, of several draft models, a path from each of the first K; or a draft
                process.

        Raises:
            InvalidInputError: K is not a whole number of at least 1, there are fewer draft models, or the
                process is one of several models and there is one, or the other way round.
        """
        return draft_process_of_models(drafts, self.draft_sources)

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; an empty text becomes the beginning-of-text token.

        Raises:
            InvalidInputError: the prompt is empty or not a text, or an id is not a token of both models.
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
        """The text of these token ids; without a tokenizer the ids, separated by spaces."""
        if self.tokenizer is None:
            return " ".join(map(str, token_ids))
        return self.tokenizer.decode(list(token_ids))

    def check_length(self, prompt_length: int, draft_length: int, new_tokens: int = 0) -> None:
        """Refuse texts longer than the models were built for, where they would score garbage."""
        limit = self.max_positions
        if limit is not None and prompt_length + new_tokens + draft_length > limit:
            text, fewer = f"a prompt of {count_text(prompt_length, 'token')}", ""
            if new_tokens:
                text, fewer = f"{text}, {new_tokens} new tokens", "ask for fewer new tokens, "
            raise InvalidInputError(
                f"{text} and a draft of {draft_length} exceed the models' {limit} positions; {fewer}use a "
                "shorter prompt or draft, or keep the last tokens of every prompt with max_prompt_tokens "
                "(--max-prompt-tokens)"
            )

    @cached_property
    def cached(self) -> tuple[bool, ...]:
        """Whether target and drafts read on from a cache, or read all of a text at every call."""
        sides = ("target", *["draft"] * len(self.drafts))
        return tuple(map(reads_on_from_cache, sides, self.models, repeat(self.vocab_size)))

    @cached_property
    def without_token(self) -> torch.Tensor | None:
        """The ids below V that the tokenizer has no token for, [n]; None where it has one for all.

        Output layers are padded beyond the tokenizer.  No text holds such an id, so none is given mass.
        """
        if self.tokenizer is None:
            return None
        ids = set(range(self.vocab_size)) - set(self.tokenizer.get_vocab().values())
        return torch.tensor(sorted(ids), device=self.device) if ids else None

    def logits(self, scores: torch.Tensor) -> torch.Tensor:
        """A model's scores as the logits of V tokens, in float32 or better.  [..., vocabulary] -> [..., V]"""
        scores = scores[..., : self.vocab_size]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        if self.temperature != 1:  # in the type of the probabilities, so that nothing is rounded before them
            scores = scores.to(self.probs_dtype) / self.temperature
        return scores if self.without_token is None else scores.index_fill(-1, self.without_token, -math.inf)

    @property
    def num_parameters(self) -> int:
        """Of all models together; weights that models share count once."""
        return sum(
            {id(weights): weights.numel() for model in self.models for weights in model.parameters()}.values()
        )

    def generator(self, seed: int) -> torch.Generator:
        """A random generator on the models' device; the same seed gives the same drafts there."""
        return torch.Generator(device=self.device).manual_seed(seed)


def check_models(pair: Any) -> None:
    """Refuse what is not a pair of language models.

    Raises:
        InvalidInputError: the text says how to load one.
    """
    if not isinstance(pair, LanguageModelPair):
        raise InvalidInputError(
            f"pair must be two language models, got {type(pair).__name__} {pair!r}; "
            "LanguageModelPair.load(target, draft) loads them"
            + ("" if isinstance(pair, str) else ", and simulate takes a ModelPair too")
        )


def _as_list(draft: Any) -> list[Any]:
    drafts = list(draft) if isinstance(draft, (list, tuple)) else [draft]
    if not drafts:
        raise InvalidInputError("the list of draft models is empty; give at least one")
    return drafts


def encode_prompts(
    models: LanguageModelPair,
    prompts: Sequence[Prompt],
    draft_length: int,
    max_prompt_tokens: int | None = None,
    new_tokens: int = 0,
) -> list[list[int]]:
    """Token ids of all prompts; needs tokenizer and configs, but no weights.

    Args:
        draft_length: L; prompt, new tokens and draft must fit into both models.
        max_prompt_tokens: keep at most so many tokens of a prompt, its last ones; None keeps all.
        new_tokens: the most tokens that are written after a prompt.

    Raises:
        InvalidInputError: there are no prompts, or one is empty, too long or not a text; the error has its
            number, from 1, and its first characters.
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
