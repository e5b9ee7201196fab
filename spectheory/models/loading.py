"""Read models and tokenizers from disk or the hub; every failure becomes an error of one line."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from spectheory.foundation.errors import InsufficientMemoryError, InvalidInputError, TokenizerMismatchError
from spectheory.foundation.extras import installed
from spectheory.foundation.validation import nearest_name
from spectheory.models.device import is_out_of_memory
from spectheory.models.known_models import KNOWN_MODELS, fetched_folder
from spectheory.models.stored_llama import StoredConfig, StoredTokenizer

BUNDLED = "bundled"
BUNDLED_FOLDER = Path(__file__).parent / "bundled"
TOKENIZER_FILES = (
    "tokenizer_config.json", "tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model",
    "sentencepiece.bpe.model",
)  # fmt: skip
GGUF_SUFFIX = ".gguf"
HUB_TIMEOUT = 10.0
"""Seconds to wait for the hub to say whether it has a model.  We ask once."""


@dataclass(frozen=True)
class ModelSource:
    """Location of the target or of a draft model.

    Attributes:
        side: ``"target"``, ``"draft"`` or ``"tokenizer"``, for error messages.
        name: the name that the user gave.
        location: the folder or hub name for the loader.
        local: do not ask the hub, because the location is a folder or the hub did not give the model.
        not_on_hub: the error of the hub or of the network, if the hub did not give the model.
        gguf_file: name of the GGUF file in the folder that holds model and tokenizer, or None.
    """

    side: str
    name: str
    location: str
    local: bool
    not_on_hub: str = ""
    gguf_file: str | None = None

    @property
    def is_bundled(self) -> bool:
        """Whether this is a model shipped here, which is read without transformers."""
        return Path(self.location).parent == BUNDLED_FOLDER

    def config(self) -> Any:
        if self.is_bundled:
            return StoredConfig.read(self.location)
        return self._read("model", import_transformers().AutoConfig)

    def has_tokenizer(self) -> bool:
        """Whether a tokenizer is stored with the model."""
        if self.gguf_file is not None:
            return _has_tokens(Path(self.location) / self.gguf_file)
        if self.is_bundled:
            return True
        import_transformers()
        from transformers.utils import cached_file

        quietly = dict.fromkeys(("missing_entries", "connection_errors", "gated_repo"), False)
        options = {f"_raise_exceptions_for_{kind}": value for kind, value in quietly.items()}
        return any(
            cached_file(self.location, file, local_files_only=self.local, **options)
            for file in TOKENIZER_FILES
        )

    def tokenizer(self) -> Any:
        if self.is_bundled:
            return StoredTokenizer(self.location)
        return self._read("tokenizer", import_transformers().AutoTokenizer)

    def model(self, device: torch.device, dtype: str | torch.dtype, target: Any = None) -> Any:
        """Load the causal language model in evaluation mode on ``device``.  ``target`` is not used."""
        kind = import_transformers().AutoModelForCausalLM
        model, report = self._read("model", kind, dtype=dtype, output_loading_info=True)
        if report["missing_keys"]:
            # transformers would fill missing weights with random numbers and only warn.
            first = min(str(key) for key in report["missing_keys"])
            raise InvalidInputError(
                f"the {self.side} model {self.name!r} lacks {len(report['missing_keys'])} weights its config "
                f"asks for, such as {first}; save it again with save_pretrained"
            )
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        try:
            return model.to(device).eval()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise InsufficientMemoryError(
                f"memory ran out on {device} for the weights of the {self.side} model {self.name!r}; "
                "use a narrower number type (as dtype='bfloat16'), a smaller model or another device"
            ) from error

    def _read(self, what: str, kind: Any, **options: Any) -> Any:
        if self.gguf_file is not None:
            _import_gguf()
            options["gguf_file"] = self.gguf_file
        try:
            return kind.from_pretrained(self.location, local_files_only=self.local, **options)
        except Exception as error:  # the loader raises many types; each becomes one line with the name
            noun = what if self.side == what else f"{self.side} {what}"
            described = f"the {noun} {self.name!r} could not be loaded"
            if self.not_on_hub:
                near = nearest_name(self.name, [*KNOWN_MODELS, BUNDLED])
                raise InvalidInputError(
                    f"{described}: there is no such folder, the cache does not have it, and the hub does not "
                    f"give it ({self.not_on_hub}){near and ';'}{near}"
                ) from None
            lines = str(error).strip().splitlines() or ["no further message"]
            raise InvalidInputError(
                f"{described} ({type(error).__name__}: {lines[0].strip()}); expected a "
                f"{'causal language ' if what == 'model' else ''}{what} in Hugging Face format"
            ) from None


def find_model(side: str, name: str | Path) -> ModelSource:
    """Find a model by name.  A hub name is looked up once, without retries.

    Args:
        name: a local folder in Hugging Face format, a GGUF file, a hub name, ``"bundled"``, or the name of a
            fetched model.
    """
    shown = str(name)
    if name in KNOWN_MODELS:
        return ModelSource(side, shown, str(fetched_folder(shown)), local=True)
    place = BUNDLED_FOLDER / side if name == BUNDLED else Path(name).expanduser()
    if shown.strip() and (place / "config.json").is_file():
        return ModelSource(side, shown, str(place), local=True)
    if place.suffix == GGUF_SUFFIX and place.is_file():
        return ModelSource(side, shown, str(place.parent), local=True, gguf_file=place.name)
    if isinstance(name, str) and name != BUNDLED and not place.exists() and not _looks_local(name):
        return _on_the_hub(side, name)
    found = (
        "has no config.json" if place.is_dir() else "is another file" if place.exists() else "does not exist"
    )
    raise InvalidInputError(
        f"the {side} {shown!r} {found}; give a folder that save_pretrained wrote, a file that ends in "
        f'{GGUF_SUFFIX}, a hub name such as "gpt2", or "bundled"'
    )


def find_tokenizer(name: str | Path | None, sources: Sequence[Any]) -> Any:
    """Load the named tokenizer, or without a name the tokenizer stored with the models.

    Args:
        name: a folder, a hub name, ``"bundled"``, or None.
        sources: sources of target and drafts.

    Returns:
        The tokenizer; None if no name is given and no model has one.

    Raises:
        InvalidInputError: there is no such tokenizer, or it cannot be read.
        TokenizerMismatchError: no name is given, and two models have different tokenizers.
    """
    if name is not None:
        folder = Path(name).expanduser()
        if name != BUNDLED and name not in KNOWN_MODELS and folder.is_dir():
            return ModelSource("tokenizer", str(name), str(folder), local=True).tokenizer()
        return find_model("target" if name == BUNDLED else "tokenizer", name).tokenizer()
    found = [source.tokenizer() for source in sources if source.has_tokenizer()]
    for other in found[1:]:
        check_same_tokenizer(found[0], other)
    return found[0] if found else None


def import_transformers() -> ModuleType:
    """Import transformers, which is slow to import and therefore not imported at the top."""
    with installed():
        import transformers
    return transformers


def _import_gguf() -> ModuleType:
    """Import the reader of GGUF files; transformers also needs accelerate to load them."""
    with installed():
        import accelerate  # noqa: F401
        import gguf
    return gguf


def _has_tokens(file: Path) -> bool:
    try:
        return _import_gguf().GGUFReader(file).get_field("tokenizer.ggml.tokens") is not None
    except ValueError:  # not a GGUF file: loading the model raises the error
        return False


def check_same_tokenizer(target_tokenizer: Any, draft_tokenizer: Any) -> None:
    target_vocab, draft_vocab = target_tokenizer.get_vocab(), draft_tokenizer.get_vocab()
    if target_vocab == draft_vocab:
        return
    differing = {
        token
        for token in target_vocab.keys() | draft_vocab.keys()
        if target_vocab.get(token) != draft_vocab.get(token)
    }
    token = min(differing, key=lambda t: (min(target_vocab.get(t, 1 << 62), draft_vocab.get(t, 1 << 62)), t))
    raise TokenizerMismatchError(
        f"target and draft have different tokenizers ({len(target_vocab)} and {len(draft_vocab)} tokens, "
        f"{len(differing)} differ): token {token!r} has id {target_vocab.get(token, 'none')} in the target "
        f"and {draft_vocab.get(token, 'none')} in the draft; use two models with one tokenizer (as the "
        "draft of smollm2: smollm2-draft, or target:29-layers), "
        "or name the one of both with tokenizer="
    )


def shared_vocab_size(tokenizer: Any, target_config: Any, *draft_configs: Any) -> int:
    """Compute V, the number of ids that all models score.

    Some checkpoints pad the output layer beyond the tokenizer, by different amounts.  Ids that not all models
    score are padding and are cut off.

    Raises:
        TokenizerMismatchError: a model scores fewer ids than the tokenizer has.
    """
    needed = 1 + max(tokenizer.get_vocab().values()) if tokenizer is not None else 1
    sides = ["target"] + ["draft"] * len(draft_configs)
    sizes = [config.get_text_config().vocab_size for config in (target_config, *draft_configs)]
    for side, size in zip(sides, sizes, strict=True):
        if size < needed:
            raise TokenizerMismatchError(
                f"the {side} model scores {size} tokens, but the tokenizer has ids up to {needed - 1}; "
                "use a tokenizer that belongs to the model"
            )
    return min(sizes)


def longest_text(*configs: Any) -> int | None:
    """Length in tokens of the longest text that all these models take; None if none states a limit."""
    limits = (getattr(config.get_text_config(), "max_position_embeddings", None) for config in configs)
    return min((limit for limit in limits if limit is not None), default=None)


def _on_the_hub(side: str, name: str) -> ModelSource:
    """Ask the hub once for the model; the loader itself would retry for half a minute."""
    import_transformers()  # brings huggingface_hub
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT)
    except Exception as error:  # no network, offline mode, no such model: many types
        reason = (str(error).splitlines() or [""])[0]
        return ModelSource(side, name, name, local=True, not_on_hub=f"{type(error).__name__}: {reason}")
    return ModelSource(side, name, name, local=False)


def _looks_local(name: str) -> bool:
    """Whether the name can only be a path.  Hub names have the form NAME or OWNER/NAME."""
    starts, ends = (".", "~", os.sep), ("/", GGUF_SUFFIX)
    if not name.strip() or name.startswith(starts) or name.endswith(ends) or "\\" in name:
        return True
    return name.count("/") > 1 or ("/" in name and Path(name).parent.is_dir())
