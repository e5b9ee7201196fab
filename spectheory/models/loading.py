"""Reading models and tokenizers from disk or hub, with one clear line when it cannot be done."""

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

BUNDLED = "bundled"
BUNDLED_FOLDER = Path(__file__).parent / "bundled"
TOKENIZER_FILES = (
    "tokenizer_config.json", "tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model",
    "sentencepiece.bpe.model",
)  # fmt: skip
GGUF_SUFFIX = ".gguf"
HUB_TIMEOUT = 10.0
"""Seconds that the hub is given to say whether it has a model; it is asked once."""


@dataclass(frozen=True)
class ModelSource:
    """Where the model of one side is.

    Attributes:
        side: ``"target"`` or ``"draft"``; names the model in errors.
        name: as it was given.
        location: the folder or hub name for the loader.
        local: no hub is to be asked: a folder, or the hub cannot be reached.
        unreachable: why the hub could not be asked, if so.
        gguf_file: the GGUF file in the folder that holds everything, if one does.
    """

    side: str
    name: str
    location: str
    local: bool
    unreachable: str = ""
    gguf_file: str | None = None

    def config(self) -> Any:
        """The model's configuration; refused unless it is of a causal language model."""
        config = self._read("model", import_transformers().AutoConfig)
        kind = ""
        if getattr(config, "is_encoder_decoder", False):
            kind = "an encoder-decoder"
        elif config.architectures and not any(map(_is_causal, config.architectures)):
            kind = f"a {config.architectures[0]}"
        if kind:
            raise InvalidInputError(
                f"the {self.side} model {self.name!r} is {kind}, which does not score the next token after a "
                "text; expected a causal language model"
            )
        return config

    def has_tokenizer(self) -> bool:
        """Whether any file of a tokenizer lies beside the model."""
        if self.gguf_file is not None:
            return _has_tokens(Path(self.location) / self.gguf_file)
        import_transformers()
        from transformers.utils import cached_file

        quietly = dict.fromkeys(("missing_entries", "connection_errors", "gated_repo"), False)
        options = {f"_raise_exceptions_for_{kind}": value for kind, value in quietly.items()}
        return any(
            cached_file(self.location, file, local_files_only=self.local, **options)
            for file in TOKENIZER_FILES
        )

    def tokenizer(self) -> Any:
        return self._read("tokenizer", import_transformers().AutoTokenizer)

    def model(self, device: torch.device, dtype: str | torch.dtype) -> Any:
        """The causal language model in evaluation mode on ``device``."""
        kind = import_transformers().AutoModelForCausalLM
        model, report = self._read("model", kind, dtype=dtype, output_loading_info=True)
        if report["missing_keys"]:
            # transformers would fill them with random numbers and only warn.
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
        except Exception as error:  # whatever the loader raises becomes one line that names the model
            noun = what if self.side == what else f"{self.side} {what}"
            described = f"the {noun} {self.name!r} could not be loaded"
            if self.unreachable:
                near = nearest_name(self.name, [*KNOWN_MODELS, BUNDLED])
                raise InvalidInputError(
                    f"{described}: there is no such folder, the cache does not have it, and the hub cannot "
                    f"be asked ({self.unreachable}){near and ';'}{near}"
                ) from None
            lines = str(error).strip().splitlines() or ["no further message"]
            raise InvalidInputError(
                f"{described} ({type(error).__name__}: {lines[0].strip()}); expected a "
                f"{'causal language ' if what == 'model' else ''}{what} in Hugging Face format"
            ) from None


def find_model(side: str, name: str | Path) -> ModelSource:
    """Where a model is; a hub name is looked up once, without retries.

    Args:
        name: a local folder in Hugging Face format, a GGUF file, a hub name, ``"bundled"``, or the name of a
            model that was fetched.
    """
    shown = str(name)
    if not shown.strip():
        raise InvalidInputError(
            f'the {side} has no name; give a folder, a hub name such as "gpt2", or "bundled"'
        )
    if name in KNOWN_MODELS:
        return ModelSource(side, shown, str(fetched_folder(str(name))), local=True)
    folder = BUNDLED_FOLDER / side if name == BUNDLED else Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InvalidInputError(
                f"the {side} {shown!r} is a folder without config.json; "
                "expected a model saved with save_pretrained"
            )
        return ModelSource(side, shown, str(folder), local=True)
    if name == BUNDLED:
        raise InvalidInputError(
            f"the bundled {side} model is not installed at {folder}; reinstall spectheory, "
            "or train it with scripts/train_bundled_pair.py"
        )
    if folder.is_file():
        if folder.suffix == GGUF_SUFFIX:
            return ModelSource(side, shown, str(folder.parent), local=True, gguf_file=folder.name)
        raise InvalidInputError(
            f"the {side} {shown!r} is a file; expected the folder of a model saved with save_pretrained, or "
            f"a file that ends in {GGUF_SUFFIX}"
        )
    if isinstance(name, Path) or _looks_local(name):
        raise InvalidInputError(
            f"the {side} folder {shown!r} does not exist; give the folder of a model saved with "
            'save_pretrained, a hub name such as "gpt2", or "bundled"'
        )
    if shown.endswith(GGUF_SUFFIX):
        raise InvalidInputError(f"the {side} file {shown!r} does not exist")
    return _on_the_hub(side, name)


def find_tokenizer(name: str | Path | None, sources: Sequence[Any]) -> Any:
    """The tokenizer of this name; else the one that the models share, of which at least one has it.

    Args:
        name: a folder, a hub name, ``"bundled"``, or None.
        sources: target and drafts.

    Returns:
        The tokenizer; None where no name is given and no model has one.

    Raises:
        InvalidInputError: there is no such tokenizer, or it cannot be read.
        TokenizerMismatchError: two models have different ones, and no name is given.
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
    """The transformers library, imported only when a model is loaded."""
    with installed():
        import transformers
    return transformers


def _import_gguf() -> ModuleType:
    """The library that reads GGUF files, with the one that transformers needs beside it."""
    with installed():
        import accelerate  # noqa: F401
        import gguf
    return gguf


def _has_tokens(file: Path) -> bool:
    try:
        return _import_gguf().GGUFReader(file).get_field("tokenizer.ggml.tokens") is not None
    except ValueError:  # not a GGUF file: said when it is loaded
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
    """V: the number of ids all models score.

    Some checkpoints pad the output layer beyond the tokenizer, not always alike; ids that only one
    model scores are padding and are cut off.
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
    """The longest text that models of these configurations take, in tokens; None if none states a limit."""
    limits = (getattr(config.get_text_config(), "max_position_embeddings", None) for config in configs)
    return min((limit for limit in limits if limit is not None), default=None)


def _is_causal(architecture: str) -> bool:
    """By the name of its class; a model that lies about it is found out when it is loaded."""
    with installed():
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as KNOWN
    return architecture in KNOWN.values() or architecture.endswith(("ForCausalLM", "LMHeadModel"))


def _on_the_hub(side: str, name: str) -> ModelSource:
    """A hub name: asked for once, with a time limit; without an answer the cache must have it."""
    import_transformers()  # brings huggingface_hub
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT)
    except (HfHubHTTPError, HFValidationError) as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status is not None and status not in (401, 403, 404):  # the hub itself is in trouble
            return ModelSource(side, name, name, local=True, unreachable=f"it answers {status}")
        raise InvalidInputError(
            f"the {side} {name!r} is neither a folder here nor a model on the hub that you may read; give "
            'the folder of a model saved with save_pretrained, a hub name such as "gpt2", or "bundled"'
        ) from None
    except (
        Exception
    ) as error:  # no network, or offline mode: libraries of several generations raise their own
        reason = (str(error).splitlines() or [""])[0]
        return ModelSource(side, name, name, local=True, unreachable=f"{type(error).__name__}: {reason}")
    return ModelSource(side, name, name, local=False)


def _looks_local(name: str) -> bool:
    """Whether the name can only be a path, so that no hub is asked: hub names are NAME or OWNER/NAME."""
    if not name or name.startswith((".", "~", os.sep)) or "\\" in name or name.endswith("/"):
        return True
    return name.count("/") > 1 or ("/" in name and Path(name).parent.is_dir())
