"""The samplers of libraries by name: what each needs, as data; any release and any checkout is loaded.

A subject names the function it calls and where releases keep it.  Files and stand-ins follow from that
function's imports.  A library is installed, or its wheel is fetched and unpacked, or a checkout is named.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spectheory.auditing.subjects.adapters import (
    accepted_counts,
    flat_batch,
    lmdeploy,
    mlx_lm,
    model_rounds,
    sglang,
    transformers,
    vllm,
    vllm_ascend,
    vllm_v2,
)
from spectheory.auditing.subjects.draft_generators import Drafted, gemma4_assistant
from spectheory.auditing.subjects.drafting_rounds import as_shipped
from spectheory.auditing.subjects.library_code import load_code
from spectheory.auditing.subjects.one_module import Given
from spectheory.auditing.subjects.reached_code import Function
from spectheory.auditing.subjects.relaxations import (
    Relaxation,
    deferred_rejection,
    mixture,
    synthetic_acceptance,
)
from spectheory.auditing.subjects.shipped import Provenance, Shipped
from spectheory.auditing.subjects.signatures import ROUND, ROUND_BATCH
from spectheory.auditing.subjects.sources import fetch_commit, release_in, release_of
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import unknown_name
from spectheory.foundation.wheels import Release, default_cache, fetch, found, parsed


class Library(NamedTuple):
    """A library as the package index has it, or a repository without releases.

    Attributes:
        top: the package that is imported, or the only module.
        tested: the version that the adapters were tested with, of a repository the commit.
        given: module -> what is imported instead.
        repository: the address, where releases are commits.
    """

    top: str
    tested: str
    given: Mapping[str, Given] = {}
    repository: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The files of a wheel that are kept: a function may be in any of them."""
        return (f"{self.top}/*.py",)

    def fetch(self, package: str, version: str, cache: Path) -> Release:
        """Download the Python files of a version, by default the tested one."""
        version = version or self.tested
        if self.repository:
            return fetch_commit(package, self.top, self.repository, version, cache)
        return fetch(f"{package}=={version}", self.files, cache)


def _of_repository(name: str, top: str, commit: str) -> Library:
    return Library(top, commit, repository=f"https://github.com/{name}")


_HSD = "ZhouYuxuanYX/Hierarchical-Speculative-Decoding"
LIBRARIES: Mapping[str, Library] = {
    "transformers": Library("transformers", "5.24.0"),
    "sglang": Library("sglang", "0.5.23"),
    "vllm": Library("vllm", "0.33.0", vllm.GIVEN),
    "lmdeploy": Library("lmdeploy", "0.18.0"),
    "mlx-lm": Library("mlx_lm", "0.32.2", mlx_lm.GIVEN),
    "vllm-ascend": Library("vllm_ascend", "0.23.0", vllm_ascend.GIVEN),
    "mlx-dspark": Library("mlx_dspark", "0.20.3", {"mlx.core": mlx_lm.GIVEN["mlx.core"]}),
    "mtplx": Library("mtplx", "2.12.2"),
    "dspark-mlx": Library("dspark_mlx", "0.1.0"),
    "dflash": Library("dflash", "0.1.0"),
    "economize": Library("economize", "0.3.2"),
    "flashspec": Library("flashspec", "0.3.1"),
    "litgpt": Library("litgpt", "0.5.13"),
    "mini-infer": Library("mini_infer", "0.2.5"),
    "specdec": Library("specdec", "0.2.0"),
    "deepspec": _of_repository(
        "deepseek-ai/DeepSpec", "deepspec", "afdfa7c9382a3341a3e6f17756dd816da79f132c"
    ),
    "eagle": _of_repository("SafeAILab/EAGLE", "eagle", "cb7e0841fe0c206c6ed74a197ad5e2a1f13f5a2b"),
    # The last commit whose speculative decoding runs.
    "gpt-fast": _of_repository(
        "meta-pytorch/gpt-fast", "generate", "bc04265df30c7b927d38f34198e0e33a63cb893e"
    ),
    # The last commit whose file is valid Python; the EAGLE beside it is of the newest commit.
    "hsd": _of_repository(_HSD, "transformers", "f3adf7f13e43011d49c29a9ce9d7ad79a1296343"),
    "hsd-eagle": _of_repository(_HSD, "eagle", "b8575e2ad42bcf2b32d0c6f3481eb49099453f33"),
}
"""Package -> library."""


class Subject(NamedTuple):
    """A sampler of a library.

    Attributes:
        package: of ``LIBRARIES``.
        function: what it calls, and where releases keep it.
        adapter: makes the sampler from the imported function; a round from that and the imported drafter.
        tested: sha256 of the function's files that the adapter was tested with -> their version.
        options: arguments of the function.
        drafter: the class or function that drafts, where it is audited too.
        shipped: how the sampler is called (``Shipped``).
    """

    package: str
    function: Function
    adapter: Callable[..., Callable[..., Any]]
    tested: Mapping[str, str]
    options: Mapping[str, Any] = {}
    drafter: Function | None = None
    shipped: Mapping[str, Any] = {}


_RATES = (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))
_SYNTHETIC: dict[str, Any] = {"synthetic_conditional_rates": torch.tensor([float(rate) for rate in _RATES])}
_AT_RATES = synthetic_acceptance(_RATES)
_FLY: dict[str, Any] = {"fly_window_size": 1, "fly_entropy_threshold": 0.3, "fly_entropy_top_k": 3}
_FLY_LAW = deferred_rejection(window=1, threshold=0.3, top_k=3)
_FLAT: Mapping[str, Any] = {"signature": "batch", "mixes": flat_batch.MIXES}


def _of_transformers(relaxation: Relaxation | None = None, **settings: Any) -> Subject:
    return Subject(
        "transformers",
        transformers.FUNCTION,
        transformers.assisted,
        {
            "d8f22301fc9ba6ff469ba9d56fa908dc48eed557fa60358e382e4beedd3ff3bd": "5.24.0",
            "01f7d1d68c9fd501ae12d516df408f3c098215ef53d8d8cbbe8104cab79e94b7": "5.23.0",
        },
        shipped={"signature": "speculative_sampling", "relaxation": relaxation},
        **settings,
    )


def _of_sglang(**options: Any) -> Subject:
    return Subject(
        "sglang",
        sglang.CHAIN,
        sglang.chain_sampling,
        {"62caac17755082e2f89b1c81a743f55c81c31b7ff0485b7533c0267e72e9262c": "0.5.23"},
        options,
        shipped={"signature": "batch", "mixes": ("greedy",), "stand_ins": sglang.STAND_INS},
    )


def _of_vllm(relaxation: Relaxation | None = None, **options: Any) -> Subject:
    return Subject(
        "vllm",
        vllm.FUNCTION,
        vllm.rejection_sample,
        {
            "9f035dd0c5af33b29ffcc63e2192f7b2fb85f8a6b4ac89275ecb5698f7ca2ff1": "0.33.0",
            "4bb87d7984d967be9c7e5b6a6b489c02571ef2f2913211cb3f1eea74b2e1f32f": "0.27.1",
        },
        options,
        shipped={**_FLAT, "relaxation": relaxation, "stand_ins": (flat_batch.BONUS,)},
    )


def _of_vllm_v2(relaxation: Relaxation | None = None, **options: Any) -> Subject:
    return Subject(
        "vllm",
        vllm_v2.FUNCTION,
        vllm_v2.rejection_sample,
        {"a4167068d1d10a36c130e2924b12cbf01f99c968f2fcf47e75a1129d3d8022c8": "0.33.0"},
        options,
        shipped={
            **_FLAT,
            "relaxation": relaxation,
            "stand_ins": vllm_v2.STAND_INS,
            "seeds": vllm_v2.SEEDS,
        },
    )


def _of_lmdeploy(function: Function, digest: str) -> Subject:
    shipped = {"signature": "batch", "mixes": ("greedy",), "stand_ins": (flat_batch.BONUS,)}
    return Subject("lmdeploy", function, lmdeploy.batch, {digest: "0.18.0"}, shipped=shipped)


def _of_ascend(block_verification: bool, **shipped: Any) -> Subject:
    return Subject(
        "vllm-ascend",
        vllm_ascend.FUNCTION,
        partial(vllm_ascend.rejection_sample, block_verification=block_verification),
        {"2cceaf9e09bb1b9752cb9ac1d8a44ebdb5bdb92f0b3533811d91c9d2b2c36534": "0.23.0"},
        shipped={**_FLAT, "stand_ins": (*vllm_ascend.STAND_INS, flat_batch.BONUS), **shipped},
    )


def _counting(
    package: str, function: Function, adapter: Callable[..., Any], digest: str, **shipped: Any
) -> Subject:
    """Of a library whose samplers return a count and a token, for a path unless it says otherwise."""
    settings = {"signature": "sampler", "num_drafts": (1,), **shipped}
    return Subject(package, function, adapter, {digest: LIBRARIES[package].tested}, shipped=settings)


def _round(package: str, function: Function, adapter: Callable[..., Any], digest: str) -> Subject:
    shipped = {"signature": ROUND, "stand_ins": model_rounds.STAND_INS}
    return Subject(package, function, adapter, {digest: LIBRARIES[package].tested}, shipped=shipped)


def _posterior(package: str, digest: str, **options: Any) -> Subject:
    tested = {digest: LIBRARIES[package].tested}
    adapter, shipped = transformers.evaluate_posterior, {"signature": "evaluate_posterior"}
    return Subject(package, transformers.POSTERIOR, adapter, tested, options, shipped=shipped)


def _hsd(**options: Any) -> Subject:
    tested = {"087cf84329c13b6eb3d52bd6bc6f164cd4fc1798f0a390bd5a06862ad2950a71": LIBRARIES["hsd"].tested}
    shipped = {"signature": "speculative_sampling"}
    return Subject("hsd", transformers.FUNCTION, transformers.assisted, tested, options, shipped=shipped)


_BATCH: Mapping[str, Any] = {"signature": "batch", "mixes": (), "num_drafts": ()}
SUBJECTS: Mapping[str, Subject] = {
    "transformers": _of_transformers(),
    "transformers-ensemble": _of_transformers(
        mixture(transformers.ENSEMBLE_WEIGHT),
        options={"assistant_ensemble_weight": float(transformers.ENSEMBLE_WEIGHT)},
    ),
    "transformers-gemma4": _of_transformers(drafter=transformers.GENERATOR),
    "sglang": _of_sglang(),
    "sglang-block": _of_sglang(block_verification=True),
    "sglang-dspark": Subject(
        "sglang",
        sglang.DSPARK,
        sglang.blockwise_rejection,
        {"c5a47f8676a9451f98f307f0eb397cc515728ec3f5031630eb2dc865adbe9090": "0.5.23"},
        shipped={"signature": "batch", "mixes": (), "seeds": sglang.DSPARK_SEEDS},
    ),
    "vllm": _of_vllm(),
    "vllm-synthetic": _of_vllm(_AT_RATES, synthetic_mode=True, **_SYNTHETIC),
    "vllm-fly": _of_vllm(_FLY_LAW, **_FLY),
    # The second model runner.
    "vllm-v2": _of_vllm_v2(),
    "vllm-v2-block": _of_vllm_v2(use_block_verification=True),
    "vllm-v2-synthetic": _of_vllm_v2(_AT_RATES, **_SYNTHETIC),
    "vllm-v2-fly": _of_vllm_v2(_FLY_LAW, **_FLY),
    "lmdeploy": _of_lmdeploy(
        lmdeploy.PORTABLE, "d50628ae69614373555c90b40cdc88458dce183219eb605ac31f8f6052bc43f5"
    ),
    # Its file launches the kernels, and is not the file that has them.
    "lmdeploy-triton": _of_lmdeploy(
        lmdeploy.IN_TRITON, "621c491fe87279db178f12f4f37fece29f59c8f07b1c93381d1770e484acac27"
    ),
    "mlx-lm": Subject(
        "mlx-lm",
        mlx_lm.FUNCTION,
        mlx_lm.speculative_generate_step,
        {"9d46803799f99d6fc7c35fff2d4357c79b1a25ae98cc63efeaaebeb50a7b5f33": "0.32.2"},
        shipped={"signature": "sampler", "num_drafts": (1,), "stand_ins": mlx_lm.STAND_INS},
    ),
    "vllm-ascend": _of_ascend(block_verification=False),
    # Block verification, of three drafted tokens and more.
    "vllm-ascend-block": _of_ascend(block_verification=True, box_bits=6),
    "sglang-uno": _counting(
        "sglang",
        accepted_counts.UNO,
        accepted_counts.uno,
        "d0080a5f06e23e0d4af2191d4176221d5cc30ed762183f5047b1333e0847c5e5",
        **_BATCH,
        stand_ins=accepted_counts.UNO_STAND_INS,
    ),
    "deepspec": _counting(
        "deepspec",
        accepted_counts.DEEPSPEC,
        accepted_counts.deepspec,
        "137098951c15816f79c0ba433132709fabbda5ac2bf081e20461fc08ad753977",
    ),
    "dflash": _counting(
        "dflash",
        accepted_counts.DFLASH,
        accepted_counts.dflash,
        "f55b7fe0a4c0b3073e0f9cdce547cce29f4b8e2168c4d2818760007c43b7651e",
    ),
    "economize": _counting(
        "economize",
        accepted_counts.ECONOMIZE,
        accepted_counts.economize,
        "6ab4d028a0c007aae5a6cdcf3bb01ca69ca2ed59ddb70d4ec499a7494f6395fe",
        num_drafts=(1, 2),
        stand_ins=(accepted_counts.SELECTOR,),
    ),
    "flashspec": _counting(
        "flashspec",
        accepted_counts.FLASHSPEC,
        accepted_counts.flashspec,
        "dab01aeb469530ffbf76c5bdb557111d55ab3ef39641a07f2e52de4b93eab068",
        **_BATCH,
    ),
    "mlx-dspark": _counting(
        "mlx-dspark",
        mlx_lm.MLX_DSPARK,
        mlx_lm.mlx_dspark,
        "5daf551b3fcc157d0fd9b3485a850fd7a837136ff4026fa0baee2f3f8077ecfd",
        stand_ins=(mlx_lm.CATEGORICAL,),
    ),
    "dspark-mlx": _counting(
        "dspark-mlx",
        mlx_lm.DSPARK_MLX,
        mlx_lm.dspark_mlx,
        "5d20b46e2dbc7c6f98a4a8c6d5322a9472957668f6b119cbcdb6000df5e42d3b",
    ),
    "mtplx": _counting(
        "mtplx",
        mlx_lm.MTPLX,
        mlx_lm.mtplx,
        "776744804b67b5b04ff06025a09d0fab0263e9e485c18b313185a3b9a91567fd",
        stand_ins=(mlx_lm.NO_FLOAT,),
    ),
    "eagle": _posterior("eagle", "68dadf1977dd76624f87d0dc5ce9f840783ccaeb7554861f1206daa664367fe9"),
    "hsd": _hsd(backward=True, clever=True),
    "hsd-block": _hsd(blockwise=True),
    "hsd-eagle": _posterior(
        "hsd-eagle", "069012fd57b0acc41ea116168469ce42ff324d9e05abccef9a18c055f3f18c26", hsd=True
    ),
    "gpt-fast": _round(
        "gpt-fast",
        model_rounds.GPT_FAST,
        model_rounds.gpt_fast,
        "ac3603db88518ff8f987d73922f5410efb14bf7ab3996e28053bdda86e88a924",
    ),
    "litgpt": _round(
        "litgpt",
        model_rounds.LITGPT,
        model_rounds.litgpt,
        "06d52bea1000dd0873ed19494faafb737d80934e2ce6dbb99ebb42724120b044",
    ),
    "mini-infer": _round(
        "mini-infer",
        model_rounds.MINI_INFER,
        model_rounds.mini_infer,
        "229377245c25f02057fdb19d75999b693d6367c5a4674a037a9cff2fec642dfd",
    ),
    "specdec": _round(
        "specdec",
        model_rounds.SPECDEC,
        model_rounds.specdec,
        "7d00965d0a5f6f84158eef9f2d891070bc6c82dc736f37433288ca01c47e97b9",
    ),
}
"""Name -> sampler."""


ROUNDS: Mapping[str, Subject] = {
    # On pairs whose rows top_p leaves as they are.
    "litgpt-top-p": SUBJECTS["litgpt"]._replace(options={"top_p": 0.7}),
    "transformers-round": Subject(
        "transformers",
        transformers.FUNCTION,
        transformers.assisted_generation,
        SUBJECTS["transformers"].tested,
        shipped={"signature": ROUND, "stand_ins": transformers.ROUND_STAND_INS},
    ),
    "vllm-v2-round": Subject(
        "vllm",
        vllm_v2.FUNCTION,
        vllm_v2.drafting_round,
        SUBJECTS["vllm-v2"].tested,
        drafter=vllm_v2.DRAFTER,
        shipped={"signature": ROUND_BATCH, "stand_ins": vllm_v2.ROUND_STAND_INS},
    ),
}
"""Name -> drafter and sampler as a round; they have many runs, are slow or need a pair of their own, so "all"
leaves them out."""
_KNOWN = {**SUBJECTS, **ROUNDS}


def load_subject(name: str, cache: Path | None = None, checkout: Path | None = None) -> Shipped:
    """The sampler of a library by its name.

    Args:
        name: of ``SUBJECTS`` or ``ROUNDS``: the installed version, or else the tested one; ``name==version``
            for another.
        cache: the folder of fetched files; by default in the user's cache.
        checkout: a working tree or unpacked sources, where these are audited.

    Raises:
        UnknownNameError: no sampler has this name.
        MissingDependencyError: Triton is not installed.
        InvalidInputError: the library is not there, or this release has no such function.
    """
    subject_name, version = parsed(name)
    if subject_name not in _KNOWN:
        raise unknown_name("sampler", subject_name, _KNOWN, ", or your own as package.module:function")
    package = _KNOWN[subject_name].package
    library = LIBRARIES[package]
    if checkout is None and library.repository:
        release = found(f"{package}=={version or library.tested}", cache or default_cache())
    elif checkout is None:
        release = release_of(package, library.top, version, library.tested, cache)
    elif version:
        raise InvalidInputError(f"{name} names a version, and a checkout has its own; leave out one of them")
    else:
        release = release_in(checkout, package, library.top)
    sampler = subject_of_release(subject_name, release)
    sampler.name = name
    return sampler


def subject_of_release(name: str, release: Release) -> Shipped:
    """The sampler of a release."""
    subject = _KNOWN[name]
    library = LIBRARIES[subject.package]
    code = load_code(release, library.top, subject.function, library.given, subject.options)
    codes = [code]
    if subject.drafter is not None:
        codes.append(load_code(release, library.top, subject.drafter, library.given))
    settings = dict(subject.shipped)
    is_round = settings["signature"] in (ROUND, ROUND_BATCH)
    function = subject.adapter(*(codes if is_round else codes[:1]))
    of_code = dict.fromkeys(text for each in codes[: 1 + is_round] for text in each.stand_ins)
    settings["stand_ins"] = (*of_code, *settings.pop("stand_ins", ()))
    version = release.version[:10] if library.repository else release.version
    provenance = Provenance(release.package, version, code.file, code.sha256, code.line)
    sampler = as_shipped(function, name=name, provenance=provenance, **settings)
    if code.sha256 not in subject.tested:
        tested = ", ".join(dict.fromkeys(each[:10] for each in subject.tested.values()))
        moved = f", and no tested release has it in {code.file}" if code.is_elsewhere else ""
        sampler.note = f"this file is not one that the adapter was tested with ({tested}){moved}"
        sampler.is_of_another_file = True
    if subject.drafter is not None:
        drafter = codes[1]
        if not is_round:
            sampler = Drafted(sampler, partial(gemma4_assistant, drafter.call))
            sampler.stand_ins = ("the assistant and its embeddings: the draft rows of the pair",)
        drafted = f"drafted by {drafter.file}, sha256 {drafter.sha256}"
        sampler.note = "; ".join(filter(None, (drafted, sampler.note)))
    rivals = dict.fromkeys(place for each in codes for place in each.rivals)
    if rivals:
        sampler.left_out = (f"statements that can replace audited functions: {', '.join(rivals)}",)
    return sampler
