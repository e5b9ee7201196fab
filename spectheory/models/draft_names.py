"""Names of drafts that are made from a model, such as ``target:20-layers`` or ``prompt:lookup-3``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import in_one_line
from spectheory.models.derived_drafts import (
    derived_config,
    first_layers,
    keep_layers,
    last_tokens,
    prompt_lookup,
)
from spectheory.models.loading import ModelSource, find_model
from spectheory.models.trained_drafts import TRAINED_DRAFTS, trained_draft

TARGET, PROMPT = "target", "prompt"
FORMS = "MODEL:N-layers, MODEL:last-N, prompt:lookup-N or prompt:ngram-N"
_PART = re.compile(r"(?P<layers>\d+)-layers|last-(?P<last>\d+)|lookup-(?P<lookup>\d+)|ngram-(?P<ngram>\d+)")


@dataclass(frozen=True)
class DerivedDraft:
    """Recipe for a draft made from a base model.

    Attributes:
        name: the name that the user gave.
        base: source of the base model.
        of_target: whether the base model is the target, so that its weights are read only once.
        part: suffix such as ``20-layers``, stored in the configuration to identify runs.
        make: function from the loaded base model to the draft.
        num_layers: number of layers of the base model that the draft keeps; None for all.
    """

    name: str
    base: ModelSource
    of_target: bool
    part: str
    make: Callable[[Any], Any]
    num_layers: int | None = None
    side = "draft"

    def config(self) -> Any:
        config = self.base.config()
        if self.num_layers is not None:
            keep_layers(config, self.num_layers)
        return derived_config(config, self.part)

    def has_tokenizer(self) -> bool:
        return not self.of_target and self.base.has_tokenizer()

    def tokenizer(self) -> Any:
        return self.base.tokenizer()

    def model(self, device: torch.device, dtype: str | torch.dtype, target: Any) -> Any:
        """Make the draft from the loaded ``target``, or from its own base model, which is read here."""
        return self.make(target if self.of_target else self.base.model(device, dtype))


def find_draft(name: str | Path, target: ModelSource) -> ModelSource | DerivedDraft:
    """Resolve the name of a draft to a model source or to a recipe.

    Args:
        name: as in ``find_model``; one of ``TRAINED_DRAFTS``; ``MODEL:N-layers`` or ``MODEL:last-N``, where
            MODEL may be ``target``; or ``prompt:lookup-N`` and ``prompt:ngram-N``.
        target: source of the target model.

    Raises:
        InvalidInputError: there is no such model, or the name has none of these forms.

    Example:
        >>> draft = find_draft("target:4-layers", find_model("target", "bundled"))
        >>> draft.config().derived, draft.base.name
        (['4-layers'], 'bundled')
    """
    if not isinstance(name, str | Path):
        raise InvalidInputError(f"the draft must be one model or a name, got {in_one_line(name)}")
    if name in TRAINED_DRAFTS:
        known, name = TRAINED_DRAFTS[str(name)], str(name)
        of_target = target.name == known.target
        source = target if of_target else find_model("draft", known.target)
        make = partial(trained_draft, folder=known.folder)
        return DerivedDraft(name, source, of_target, known.folder.name, make, known.num_layers)
    base, _, part = str(name).rpartition(":")
    match = _PART.fullmatch(part)
    if isinstance(name, Path) or not base or not (match or base in (TARGET, PROMPT)):
        return find_model("draft", name)
    kind = match.lastgroup if match else None
    if match is None or kind is None or (kind in ("lookup", "ngram")) != (base == PROMPT):
        raise InvalidInputError(f"the draft {name!r} is not known; expected {FORMS}")
    count = int(match[kind])
    if not count:
        raise InvalidInputError(f"the draft {part!r} is of nothing; give a number of at least 1")
    of_target = base in (TARGET, PROMPT)
    source = target if of_target else find_model("draft", base)
    make = {
        "layers": partial(first_layers, count=count),
        "last": partial(last_tokens, width=count),
        "lookup": partial(prompt_lookup, longest=count),
        "ngram": partial(prompt_lookup, longest=count, every_place=True),
    }[kind]
    num_layers = count if kind == "layers" else None
    return DerivedDraft(str(name), source, of_target, part, make, num_layers)
