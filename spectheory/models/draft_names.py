"""Names of drafts that are made of a model: ``target:20-layers``, ``prompt:lookup-3``, and so on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spectheory.foundation.errors import InvalidInputError
from spectheory.models.derived_drafts import (
    derived_config,
    few_tokens,
    first_layers,
    last_tokens,
    layers_config,
    prompt_lookup,
    prompt_ngrams,
    tokens_config,
)
from spectheory.models.loading import ModelSource, find_model
from spectheory.models.trained_drafts import TRAINED_DRAFTS, trained_config, trained_draft

TARGET, PROMPT = "target", "prompt"
FORMS = "N-layers, last-N, vocab-N, vocab=FILE.json; prompt:lookup-N or prompt:ngram-N"
_PART = re.compile(
    r"(?P<layers>\d+)-layers|last-(?P<last>\d+)|vocab-(?P<vocab>\d+)|vocab=(?P<file>.+)|lookup-(?P<lookup>\d+)"
    r"|ngram-(?P<ngram>\d+)"
)


class Part(NamedTuple):
    """A step from one model to another, and from its configuration."""

    model: Callable[[Any], Any]
    config: Callable[[Any], Any]


@dataclass(frozen=True)
class DerivedDraft:
    """A draft that is made of a model.

    Attributes:
        name: as it was given.
        base: where the model is.
        of_target: that model is the target, whose weights are not read twice.
        parts: what is made of it, in this order.
    """

    name: str
    base: ModelSource
    of_target: bool
    parts: tuple[Part, ...]
    side = "draft"

    def config(self) -> Any:
        config = self.base.config()
        for part in self.parts:
            config = part.config(config)
        return config

    def has_tokenizer(self) -> bool:
        return not self.of_target and self.base.has_tokenizer()

    def tokenizer(self) -> Any:
        return self.base.tokenizer()

    def model(self, target: Any, device: torch.device, dtype: str | torch.dtype) -> Any:
        """The draft; ``target`` is the loaded target."""
        model = target if self.of_target else self.base.model(device, dtype)
        for part in self.parts:
            model = part.model(model)
        return model


def find_draft(name: str | Path, target: ModelSource) -> ModelSource | DerivedDraft:
    """Where a draft model is, or what it is made of.

    Args:
        name: as in ``find_model``; one of ``TRAINED_DRAFTS``; or ``MODEL:PART,..`` with parts
            ``N-layers``, ``last-N``, ``vocab-N`` and ``vocab=FILE.json`` (a list of token ids), where MODEL
            may be ``target``; or ``prompt:lookup-N`` and ``prompt:ngram-N``.
        target: where the target is.

    Raises:
        InvalidInputError: there is no such model, or a part is not known.

    Example:
        >>> draft = find_draft("target:4-layers", find_model("target", "bundled"))
        >>> draft.config().num_hidden_layers, draft.base.name
        (4, 'bundled')
    """
    if name in TRAINED_DRAFTS:
        known, name = TRAINED_DRAFTS[str(name)], str(name)
        of_target = target.name == known.target
        source = target if of_target else find_model("draft", known.target)
        part = Part(partial(trained_draft, folder=known.folder), partial(trained_config, name=name))
        return DerivedDraft(name, source, of_target, (part,))
    base, colon, parts = str(name).rpartition(":")
    matches = [_PART.fullmatch(part) for part in parts.split(",")]
    is_derived = base in (TARGET, PROMPT) or all(matches)
    if isinstance(name, Path) or not colon or not is_derived:
        return find_model("draft", name)
    # A look-up gives all mass to few tokens, of which fewer tokens may leave nothing: it is the only part.
    looks_up = any(match["lookup"] or match["ngram"] for match in matches if match)
    if not all(matches) or looks_up != (base == PROMPT) or (looks_up and len(matches) > 1):
        raise InvalidInputError(f"the draft {name!r} is not known; expected MODEL:PART,.. with {FORMS}")
    of_target = base in (TARGET, PROMPT)
    source = target if of_target else find_model("draft", base)
    return DerivedDraft(str(name), source, of_target, tuple(_part(match) for match in matches if match))


def _part(match: re.Match[str]) -> Part:
    kind, text = next((kind, text) for kind, text in match.groupdict().items() if text is not None)
    if kind == "file":
        ids = _read_ids(Path(text))
        return Part(partial(few_tokens, token_ids=ids), partial(tokens_config, token_ids=ids))
    count = int(text)
    if not count:
        raise InvalidInputError(f"the draft {match[0]!r} is of nothing; give a number of at least 1")
    if kind == "layers":
        return Part(partial(first_layers, count=count), partial(layers_config, count=count))
    if kind == "vocab":
        return Part(partial(few_tokens, token_ids=count), partial(tokens_config, token_ids=count))
    made = {
        "last": partial(last_tokens, width=count),
        "lookup": partial(prompt_lookup, longest=count),
        "ngram": partial(prompt_ngrams, longest=count),
    }
    return Part(made[kind], partial(derived_config, part=match[0]))


def _read_ids(path: Path) -> list[int]:
    """The token ids in a file.

    Raises:
        InvalidInputError: the file cannot be read, or is not a JSON list of whole numbers.
    """
    try:
        ids = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"cannot read the token ids {path}: {error}") from None
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        raise InvalidInputError(f"{path} is not a list of token ids; expected JSON such as [0, 5, 7]")
    return ids
