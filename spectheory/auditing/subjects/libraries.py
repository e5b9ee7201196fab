"""The samplers of released libraries, by name; each is loaded on first use, unmodified.

A library is either installed, such as transformers, or its wheel is fetched and a few files are unpacked.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spectheory.auditing.subjects.adapters import (
    flat_batch,
    lmdeploy,
    mlx_lm,
    sglang,
    transformers,
    vllm,
    vllm_ascend,
    vllm_v2,
)
from spectheory.auditing.subjects.one_module import file_of
from spectheory.auditing.subjects.relaxations import Relaxation, deferred_rejection, synthetic_acceptance
from spectheory.auditing.subjects.shipped import Provenance, Shipped
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import unknown_name
from spectheory.foundation.wheels import Release, default_cache, found, parsed


class Library(NamedTuple):
    """A library whose wheel is fetched: the version that the adapters were tested with, and the files."""

    requirement: str
    files: tuple[str, ...]


class Installed(NamedTuple):
    """A sampler of a library that is installed.

    Attributes:
        known: sha256 of the files that this adapter was tested with -> their version.
        load: name -> verifier.
    """

    known: Mapping[str, str]
    load: Callable[[str], Shipped]


class Fetched(NamedTuple):
    """A sampler of a library of which some files are fetched.

    Attributes:
        known: sha256 of the files that this adapter was tested with -> their version.
        library: the library.
        file: the file that holds the sampler.
        sampler: makes the sampler from the fetched files.
        options: how it is called (``Shipped``).
    """

    known: Mapping[str, str]
    library: Library
    file: str
    sampler: Callable[[Release], Callable[..., Any]]
    options: Mapping[str, Any]


_SGLANG = Library("sglang==0.5.23", sglang.FILES)
_VLLM = Library(
    "vllm==0.33.0",
    (file_of(vllm.MODULE), file_of(vllm_v2.MODULE), file_of(vllm_v2.GUMBEL), "vllm/v1/spec_decode/*.py"),
)
_LMDEPLOY = Library("lmdeploy==0.18.0", lmdeploy.FILES)
_MLX_LM = Library("mlx-lm==0.32.2", mlx_lm.FILES)
_ASCEND = Library("vllm-ascend==0.23.0", vllm_ascend.FILES)
LIBRARIES: Mapping[str, Library] = {
    parsed(library.requirement)[0]: library for library in (_SGLANG, _VLLM, _LMDEPLOY, _MLX_LM, _ASCEND)
}
"""Package -> the files that are fetched."""

_RATES = (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))
_SYNTHETIC: dict[str, Any] = {"synthetic_conditional_rates": torch.tensor([float(rate) for rate in _RATES])}
_FLY: dict[str, Any] = {"fly_window_size": 1, "fly_entropy_threshold": 0.3, "fly_entropy_top_k": 3}
_FLY_LAW = deferred_rejection(window=1, threshold=0.3, top_k=3)
_FLAT: Mapping[str, Any] = {"signature": "batch", "mixes": flat_batch.MIXES}


def _of_transformers(load: Callable[[str], Shipped]) -> Installed:
    return Installed({"01f7d1d68c9fd501ae12d516df408f3c098215ef53d8d8cbbe8104cab79e94b7": "5.23.0"}, load)


def _of_sglang(block_verification: bool) -> Fetched:
    return Fetched(
        {"62caac17755082e2f89b1c81a743f55c81c31b7ff0485b7533c0267e72e9262c": "0.5.23"},
        _SGLANG,
        sglang.FILES[0],
        partial(sglang.chain_sampling, block_verification=block_verification),
        {"signature": "batch", "stand_ins": sglang.STAND_INS},
    )


def _of_vllm(relaxation: Relaxation | None = None, **shipped: Any) -> Fetched:
    return Fetched(
        {
            "9f035dd0c5af33b29ffcc63e2192f7b2fb85f8a6b4ac89275ecb5698f7ca2ff1": "0.33.0",
            "4bb87d7984d967be9c7e5b6a6b489c02571ef2f2913211cb3f1eea74b2e1f32f": "0.27.1",
        },
        _VLLM,
        file_of(vllm.MODULE),
        partial(vllm.rejection_sample, **shipped),
        {**_FLAT, "relaxation": relaxation, "stand_ins": vllm.STAND_INS},
    )


def _of_vllm_v2(relaxation: Relaxation | None = None, **shipped: Any) -> Fetched:
    return Fetched(
        {"a4167068d1d10a36c130e2924b12cbf01f99c968f2fcf47e75a1129d3d8022c8": "0.33.0"},
        _VLLM,
        file_of(vllm_v2.MODULE),
        partial(vllm_v2.rejection_sample, **shipped),
        {**_FLAT, "relaxation": relaxation, "stand_ins": vllm_v2.STAND_INS, "seeds": vllm_v2.SEEDS},
    )


def _of_lmdeploy(digest: str, file: str, sampler: Callable[[Release], Any]) -> Fetched:
    options = {"signature": "batch", "mixes": ("greedy",), "stand_ins": lmdeploy.STAND_INS}
    return Fetched({digest: "0.18.0"}, _LMDEPLOY, file, sampler, options)


def _of_ascend(block_verification: bool, **options: Any) -> Fetched:
    return Fetched(
        {"2cceaf9e09bb1b9752cb9ac1d8a44ebdb5bdb92f0b3533811d91c9d2b2c36534": "0.23.0"},
        _ASCEND,
        vllm_ascend.FILES[0],
        partial(vllm_ascend.rejection_sample, block_verification=block_verification),
        {**_FLAT, "stand_ins": vllm_ascend.STAND_INS, **options},
    )


SUBJECTS: Mapping[str, Installed | Fetched] = {
    "transformers": _of_transformers(transformers.assisted),
    "transformers-ensemble": _of_transformers(transformers.ensemble),
    "transformers-gemma4": _of_transformers(transformers.gemma4),
    "sglang": _of_sglang(block_verification=False),
    "sglang-block": _of_sglang(block_verification=True),
    "sglang-dspark": Fetched(
        {"c5a47f8676a9451f98f307f0eb397cc515728ec3f5031630eb2dc865adbe9090": "0.5.23"},
        _SGLANG,
        file_of(sglang.DSPARK[0]),
        sglang.blockwise_rejection,
        {"signature": "batch", "stand_ins": sglang.DSPARK_STAND_INS, "seeds": sglang.DSPARK_SEEDS},
    ),
    "vllm": _of_vllm(),
    "vllm-synthetic": _of_vllm(synthetic_acceptance(_RATES), synthetic_mode=True, **_SYNTHETIC),
    "vllm-fly": _of_vllm(_FLY_LAW, **_FLY),
    # The second model runner.
    "vllm-v2": _of_vllm_v2(),
    "vllm-v2-block": _of_vllm_v2(use_block_verification=True),
    "vllm-v2-synthetic": _of_vllm_v2(synthetic_acceptance(_RATES), **_SYNTHETIC),
    "vllm-v2-fly": _of_vllm_v2(_FLY_LAW, **_FLY),
    "lmdeploy": _of_lmdeploy(
        "d50628ae69614373555c90b40cdc88458dce183219eb605ac31f8f6052bc43f5",
        lmdeploy.FILES[0],
        lmdeploy.portable,
    ),
    "lmdeploy-triton": _of_lmdeploy(
        "872303d1b321f94d259cca2bd60c6e2fb862cbaa312bd3458bfb4f7a72e12934",
        lmdeploy.FILES[-1],
        lmdeploy.in_triton,
    ),
    "mlx-lm": Fetched(
        {"9d46803799f99d6fc7c35fff2d4357c79b1a25ae98cc63efeaaebeb50a7b5f33": "0.32.2"},
        _MLX_LM,
        mlx_lm.FILES[0],
        mlx_lm.speculative_generate_step,
        {"signature": "sampler", "num_drafts": (1,), "stand_ins": mlx_lm.STAND_INS},
    ),
    "vllm-ascend": _of_ascend(block_verification=False),
    # Block verification, of three drafted tokens and more.
    "vllm-ascend-block": _of_ascend(block_verification=True, box_bits=9),
}
"""Name -> sampler."""


def load_subject(name: str, cache: Path | None = None) -> Shipped:
    """The sampler of a library by its name.

    Args:
        name: of ``SUBJECTS``; ``name==version`` for another version of the library.
        cache: the folder of fetched files; by default in the user's cache.

    Raises:
        UnknownNameError: no sampler has this name.
        MissingDependencyError: the library, or Triton, is not installed.
        InvalidInputError: the library is not fetched, or this version has other files.
    """
    subject_name, version = parsed(name)
    if subject_name not in SUBJECTS:
        raise unknown_name("sampler", subject_name, SUBJECTS, ", or your own as package.module:function")
    subject = SUBJECTS[subject_name]
    if isinstance(subject, Installed):
        if version:
            raise InvalidInputError(f"{subject_name} is audited as it is installed; give no version")
        sampler = subject.load(name)
    else:
        sampler = _fetched(name, subject, version, default_cache() if cache is None else cache)
    if sampler.provenance.sha256 not in subject.known:
        tested = ", ".join(subject.known.values())
        sampler.note += (
            "; " * bool(sampler.note) + f"this file is not one that the adapter was tested with ({tested})"
        )
    return sampler


def _fetched(name: str, subject: Fetched, version: str, cache: Path) -> Shipped:
    package, tested = parsed(subject.library.requirement)
    release = found(f"{package}=={version or tested}", cache, subject.file)
    function = subject.sampler(release)
    digest = sha256((release.folder / subject.file).read_bytes()).hexdigest()
    provenance = Provenance(package, release.version, subject.file, digest)
    return Shipped(function, name=name, provenance=provenance, **subject.options)
