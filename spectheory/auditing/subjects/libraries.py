"""The samplers of released libraries, by name; each is loaded on first use, unmodified.

A library is installed, as transformers is, or its wheel was fetched and a few files of it unpacked.
"""

from __future__ import annotations

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
from spectheory.auditing.subjects.relaxations import DeferredRejection, Relaxation, SyntheticAcceptance
from spectheory.auditing.subjects.shipped import Provenance, Shipped
from spectheory.auditing.subjects.wheels import Release, default_cache, found, parsed
from spectheory.errors import InvalidInputError
from spectheory.validate import unknown_name


class Library(NamedTuple):
    """A library whose wheel is fetched.

    Attributes:
        requirement: the version that the adapter was tested with.
        files: the files of the wheel that are unpacked.
    """

    requirement: str
    files: tuple[str, ...]


class Installed(NamedTuple):
    """A sampler of a library that is installed.

    Attributes:
        what: in one line.
        known: sha256 of the files that this adapter was tested with -> their version.
        load: name -> verifier.
    """

    what: str
    known: Mapping[str, str]
    load: Callable[[str], Shipped]


class Fetched(NamedTuple):
    """A sampler of a library of which some files are fetched.

    Attributes:
        what: in one line.
        known: sha256 of the files that this adapter was tested with -> their version.
        library: where it is from.
        file: that holds the sampler.
        sampler: makes it out of the fetched files.
        options: how it is called (``Shipped``).
    """

    what: str
    known: Mapping[str, str]
    library: Library
    file: str
    sampler: Callable[[Release], Callable[..., Any]]
    options: Mapping[str, Any]


_TRANSFORMERS = {"01f7d1d68c9fd501ae12d516df408f3c098215ef53d8d8cbbe8104cab79e94b7": "5.23.0"}
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
"""Package -> what is fetched of it."""

_FLAT = {"signature": "batch", "mixes": flat_batch.MIXES}
_LMDEPLOY_OPTIONS = {"signature": "batch", "mixes": ("greedy",), "stand_ins": lmdeploy.STAND_INS}
_ASCEND_OPTIONS = {**_FLAT, "stand_ins": vllm_ascend.STAND_INS}
_SGLANG_OPTIONS = {"signature": "batch", "stand_ins": sglang.STAND_INS}

_RATES = (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))
_SYNTHETIC = SyntheticAcceptance(_RATES)
_SYNTHETIC_OPTION: Mapping[str, Any] = {
    "synthetic_conditional_rates": torch.tensor([float(rate) for rate in _RATES])
}
_FLY = DeferredRejection(window=1, threshold=0.3, top_k=3)
_FLY_OPTIONS: Mapping[str, Any] = {"fly_window_size": 1, "fly_entropy_threshold": 0.3, "fly_entropy_top_k": 3}
_FIRST_RUNNER = {
    "9f035dd0c5af33b29ffcc63e2192f7b2fb85f8a6b4ac89275ecb5698f7ca2ff1": "0.33.0",
    "4bb87d7984d967be9c7e5b6a6b489c02571ef2f2913211cb3f1eea74b2e1f32f": "0.27.1",
}
_SECOND_RUNNER = {"a4167068d1d10a36c130e2924b12cbf01f99c968f2fcf47e75a1129d3d8022c8": "0.33.0"}


def _of_vllm(what: str, sampler: Callable[[Release], Any], **options: Any) -> Fetched:
    return Fetched(
        what,
        _FIRST_RUNNER,
        _VLLM,
        file_of(vllm.MODULE),
        sampler,
        {**_FLAT, "stand_ins": vllm.STAND_INS, **options},
    )


def _of_vllm_v2(what: str, relaxation: Relaxation | None = None, **shipped: Any) -> Fetched:
    sampler = partial(vllm_v2.rejection_sample, **shipped)
    options = {**_FLAT, "relaxation": relaxation, "stand_ins": vllm_v2.STAND_INS, "seeds": vllm_v2.SEEDS}
    return Fetched(what, _SECOND_RUNNER, _VLLM, file_of(vllm_v2.MODULE), sampler, options)


SUBJECTS: Mapping[str, Installed | Fetched] = {
    "transformers": Installed(
        "token verification of assisted generation", _TRANSFORMERS, transformers.assisted
    ),
    "transformers-ensemble": Installed(
        f"the same with assistant_ensemble_weight = {transformers.ENSEMBLE_WEIGHT}, lossy by design",
        _TRANSFORMERS,
        transformers.ensemble,
    ),
    "transformers-gemma4": Installed(
        "the same with the candidate generator for Gemma 4 assistants and do_sample=True",
        _TRANSFORMERS,
        transformers.gemma4,
    ),
    "sglang": Fetched(
        "token verification of a chain, a Triton kernel",
        {"62caac17755082e2f89b1c81a743f55c81c31b7ff0485b7533c0267e72e9262c": "0.5.23"},
        _SGLANG,
        sglang.FILES[0],
        partial(sglang.chain_sampling, block_verification=False),
        _SGLANG_OPTIONS,
    ),
    "sglang-block": Fetched(
        "block verification by the same kernel",
        {"62caac17755082e2f89b1c81a743f55c81c31b7ff0485b7533c0267e72e9262c": "0.5.23"},
        _SGLANG,
        sglang.FILES[0],
        partial(sglang.chain_sampling, block_verification=True),
        _SGLANG_OPTIONS,
    ),
    "sglang-dspark": Fetched(
        "token verification of DSpark's chains, Triton kernels",
        {"c5a47f8676a9451f98f307f0eb397cc515728ec3f5031630eb2dc865adbe9090": "0.5.23"},
        _SGLANG,
        file_of(sglang.DSPARK[0]),
        sglang.blockwise_rejection,
        {"signature": "batch", "stand_ins": sglang.DSPARK_STAND_INS, "seeds": sglang.DSPARK_SEEDS},
    ),
    "vllm": _of_vllm("token verification of the first model runner, Triton kernels", vllm.rejection_sample),
    "vllm-synthetic": _of_vllm(
        "the same with synthetic acceptance, lossy by design",
        partial(vllm.rejection_sample, synthetic_mode=True, **_SYNTHETIC_OPTION),
        relaxation=_SYNTHETIC,
    ),
    "vllm-fly": _of_vllm(
        "the same with FLy acceptance, lossy by design",
        partial(vllm.rejection_sample, **_FLY_OPTIONS),
        relaxation=_FLY,
    ),
    "vllm-v2": _of_vllm_v2("token verification of the second model runner, Triton kernels"),
    "vllm-v2-block": _of_vllm_v2(
        "block verification of the second model runner", use_block_verification=True
    ),
    "vllm-v2-synthetic": _of_vllm_v2(
        "token verification of the second model runner with synthetic acceptance, lossy by design",
        _SYNTHETIC,
        **_SYNTHETIC_OPTION,
    ),
    "vllm-v2-fly": _of_vllm_v2(
        "token verification of the second model runner with FLy acceptance, lossy by design",
        _FLY,
        **_FLY_OPTIONS,
    ),
    "lmdeploy": Fetched(
        "token verification, portable",
        {"d50628ae69614373555c90b40cdc88458dce183219eb605ac31f8f6052bc43f5": "0.18.0"},
        _LMDEPLOY,
        lmdeploy.FILES[0],
        lmdeploy.portable,
        _LMDEPLOY_OPTIONS,
    ),
    "lmdeploy-triton": Fetched(
        "token verification, Triton kernels",
        {"872303d1b321f94d259cca2bd60c6e2fb862cbaa312bd3458bfb4f7a72e12934": "0.18.0"},
        _LMDEPLOY,
        lmdeploy.FILES[-1],
        lmdeploy.in_triton,
        _LMDEPLOY_OPTIONS,
    ),
    "mlx-lm": Fetched(
        "sampling from the target and comparing with the drafts, on numpy arrays",
        {"9d46803799f99d6fc7c35fff2d4357c79b1a25ae98cc63efeaaebeb50a7b5f33": "0.32.2"},
        _MLX_LM,
        mlx_lm.FILES[0],
        mlx_lm.speculative_generate_step,
        {"signature": "sampler", "stand_ins": mlx_lm.STAND_INS},
    ),
    "vllm-ascend": Fetched(
        "token verification, in torch",
        {"2cceaf9e09bb1b9752cb9ac1d8a44ebdb5bdb92f0b3533811d91c9d2b2c36534": "0.23.0"},
        _ASCEND,
        vllm_ascend.FILES[0],
        partial(vllm_ascend.rejection_sample, block_verification=False),
        _ASCEND_OPTIONS,
    ),
    "vllm-ascend-block": Fetched(
        "block verification of three drafted tokens and more, in torch",
        {"2cceaf9e09bb1b9752cb9ac1d8a44ebdb5bdb92f0b3533811d91c9d2b2c36534": "0.23.0"},
        _ASCEND,
        vllm_ascend.FILES[0],
        partial(vllm_ascend.rejection_sample, block_verification=True),
        {**_ASCEND_OPTIONS, "box_bits": 9},
    ),
}
"""Name -> sampler."""


def load_subject(name: str, cache: Path | None = None) -> Shipped:
    """The sampler of that name.

    Args:
        name: of ``SUBJECTS``; ``name==version`` for another version of its library.
        cache: the folder of fetched files; by default the user's.

    Raises:
        UnknownNameError: there is none.
        MissingDependencyError: its library, or Triton, is not installed.
        InvalidInputError: the library is not fetched, or the version has another shape.
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
