"""Build the first line of a checkpoint: everything that determines the numbers of a run.

We identify models by a hash of their configuration and by size and time of their weight files, or by their
revision on the hub.  We identify prompts by token ids, and users' code by its source file and by its
attributes that are numbers or texts.  We cannot detect changes in files that this code imports or reads.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory import __version__
from spectheory.foundation.documents import json_sha256
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair

WEIGHTS = (".safetensors", ".bin", ".gguf")
"""File name endings of weights."""
OF_THE_LOADER = ("_name_or_path", "transformers_version", "dtype", "torch_dtype", "quantization_config")
"""Fields of a configuration that depend on how it was read.  Reading a GGUF file adds the last one."""
LIBRARIES = sys.stdlib_module_names | {"spectheory", "numpy", "torch", "transformers"}
"""Modules that are not users' code.  The first line contains the version of this package."""


def first_line(
    pair: LanguageModelPair,
    prompts: Sequence[Sequence[int]],
    verifiers: Sequence[Verifier],
    arguments: Mapping[str, Any],
    processes: Sequence[DraftProcess] = (),
) -> dict[str, Any]:
    """Collect everything that determines the numbers of a run on language models, without reading weights.

    Args:
        prompts: token ids of the prompts.
        verifiers: verifiers, not yet bound to a draft process.
        arguments: arguments of the run, as JSON values.
        processes: draft processes, including users' own.

    Raises:
        InvalidInputError: a model is in memory only, or a user's code has no source file.
    """
    things: list[Verifier | DraftProcess] = [*verifiers, *processes]
    return {
        "spectheory": __version__,
        **arguments,
        "prompts": json_sha256([list(ids) for ids in prompts]),
        **of_models(pair),
        "verifiers": [verifier.name for verifier in verifiers],
        "code": {thing.name: _code(thing) for thing in things},
    }


def of_models(pair: LanguageModelPair) -> dict[str, Any]:
    """Identify a pair of models, its tokenizer, device type and dtypes."""
    target, draft = map(_model, pair.configs)
    stored = getattr(pair.configs[0], "dtype", None)
    weights = stored if pair.weights_dtype == "auto" else pair.weights_dtype
    return {
        "target": target,
        "draft": draft,
        "tokenizer": json_sha256(pair.tokenizer.get_vocab() if pair.tokenizer is not None else {}),
        "vocab_size": pair.vocab_size,
        "device_type": pair.device.type,
        "weights": str(weights).removeprefix("torch."),
        "probabilities": str(pair.probs_dtype).removeprefix("torch."),
        "tempered": pair.temperature,
    }


def _model(config: Any) -> dict[str, Any]:
    """Identify a model by its configuration, which also says where it was read."""
    name, revision = getattr(config, "_name_or_path", ""), getattr(config, "_commit_hash", None)
    folder = Path(name)
    if not (name and folder.is_dir()) and revision is None:
        raise InvalidInputError(
            f"the model {name or config.model_type!r} is in memory only, so that a checkpoint could not tell "
            "its versions apart; save it to a folder and load it, or run without a checkpoint"
        )
    files = sorted(folder.iterdir()) if name and folder.is_dir() else []
    content = {field: value for field, value in config.to_dict().items() if field not in OF_THE_LOADER}
    # The end-of-sequence tokens are in a separate file.
    ends = [file.read_text(encoding="utf-8") for file in files if file.name == "generation_config.json"]
    stats = [(file.name, file.stat()) for file in files if file.suffix in WEIGHTS]
    return {
        "name": str(folder.resolve()) if files else name,
        "revision": revision,
        "configuration": json_sha256([content, ends]),
        "weights": json_sha256([[file, stat.st_size, stat.st_mtime_ns] for file, stat in stats]),
    }


def _code(thing: Verifier | DraftProcess) -> dict[str, Any]:
    """Describe the code of a verifier or draft process: class, plain attributes, hashes of users' files."""
    described: Any = thing.user_object if isinstance(thing, UserVerifier) else thing
    held = getattr(described, "__dict__", {})
    functions = [value for value in held.values() if callable(value)]
    parts = [part if inspect.isroutine(part) else type(part) for part in (described, *functions)]
    found: dict[str, Any] = {
        "class": f"{type(described).__module__}.{type(described).__qualname__}",
        "parameters": {key: value for key, value in held.items() if isinstance(value, (int, float, str))},
    }
    users = [part for part in parts if str(part.__module__).partition(".")[0] not in LIBRARIES]
    return found | {"sources": [_source(thing.name, part) for part in users]}


def _source(name: str, part: Any) -> str:
    try:
        return sha256(Path(inspect.getsourcefile(part) or "").read_bytes()).hexdigest()
    except (OSError, TypeError):
        raise InvalidInputError(
            f"{name!r} has no source file, so that a checkpoint could not tell an edited version of it "
            "apart; put it into a module, or run without a checkpoint"
        ) from None
