"""Samplers of libraries by name: of installed, fetched and checked-out releases, seen before or not."""

import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from audited import CACHE, FLAT, fetched, released
from audits.forms import stated as stated_laws
from audits.forms.flat_batch import MIXES
from audits.registry import SUBJECTS, load_samplers, load_subject
from deep import first_is_quick
from later import Later
from spectheory import certify, instances
from spectheory.auditing.rounds.batch_battery import FIRST
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.verdicts.audit_certificate import RELAXATION
from spectheory.foundation.errors import InvalidInputError, UnknownNameError
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS

transformers_utils = Later("transformers.generation.utils")

ROOT = Path(__file__).parents[2]
MODULE = "vllm_ascend.sample.rejection_sampler"
WRONG = ("* q[token] < p[token]", "* q[token] > p[token]")


def defect_of(sampler: Shipped) -> float:
    """For a request alone, on one pair; audits of checkouts are tested on the command line."""
    return float(certify(sampler, instances.two_residual_tokens(1), with_optimum=False).total_variation)


def made_up(root: Path, text: str = FLAT, module: str = MODULE) -> Path:
    """A tree of vLLM Ascend with a sampler of our own."""
    released(root, "vllm_ascend.__init__", "raise RuntimeError('the package is imported')")
    released(root, module, text)
    return root


def test_the_installed_file_is_loaded() -> None:
    """Byte for byte; what the subjects add to it."""
    found = load_subject("transformers")
    assert found.provenance.file == "transformers/generation/utils.py"
    assert found.provenance.line == transformers_utils._speculative_sampling.__code__.co_firstlineno
    ensemble = load_subject("transformers-ensemble")
    assert ensemble.relaxation is not None
    assert ensemble.relaxation.weight == Fraction(1, 2)
    note = load_subject("transformers-gemma4").note
    assert "drafted by transformers/generation/candidate_generator.py, sha256 " in note


def test_a_file_that_was_not_tested_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash decides, not the version; in the note and in the scope."""
    subject = SUBJECTS["transformers"]
    for tested, says in (
        ({load_subject("transformers").provenance.sha256: "1.2"}, ""),
        ({"0": "1.2"}, "(1.2)"),
    ):
        monkeypatch.setitem(SUBJECTS, "transformers", subject._replace(tested=tested))
        found = load_subject("transformers")
        assert found.note.endswith(says)
        assert bool(found.note) is bool(says) is found.is_of_another_file


def test_an_unknown_library() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'transformers'"):
        load_subject("transformer")


def test_every_subject_knows_its_function() -> None:
    """In modules of its library, in the tested version; names of parameters, except for classes."""
    for name, subject in SUBJECTS.items():
        library = subject.library
        assert all(f"{module}.".startswith(f"{library.top}.") for module in subject.function.modules), name
        assert library.tested in subject.tested.values(), name
        assert subject.function.parameters or subject.function.name[0].isupper(), name
        assert subject.verdict in (LOSSLESS, NOT_LOSSLESS, RELAXATION), name
        assert subject.mistake or subject.verdict == NOT_LOSSLESS or name == "transformers-round", name
        assert not subject.mend or subject.verdict == NOT_LOSSLESS, name


def test_how_samplers_are_called() -> None:
    """Signature, paths, kinds of batches, relaxation, stand-ins, seeds and options of every subject."""
    settings = {name: dict(subject.settings) for name, subject in SUBJECTS.items()}
    relaxed = {name for name, given in settings.items() if given.pop("relaxation", None)}
    assert relaxed == {
        "transformers-ensemble", "vllm-synthetic", "vllm-fly", "vllm-v2-synthetic", "vllm-v2-fly",
        "medusa-typical",
    }  # fmt: skip
    runner = {"vllm-v2", "vllm-v2-block", "vllm-v2-synthetic", "vllm-v2-fly"}
    seeded = {name for name, given in settings.items() if given.pop("seeds", ())}
    assert seeded == runner | {"sglang-dspark"}
    stated = {name for name, given in settings.items() if given.pop("stand_ins", ())}
    as_they_are = "transformers transformers-ensemble sglang-dspark deepspec dflash"
    as_they_are += " flashspec dspark-mlx eagle hsd hsd-block hsd-eagle layerskip"
    as_they_are += " mcsd mcsd-replacement mcsd-naive specexec-specinfer"
    assert set(settings) - stated == set(as_they_are.split())
    kinds: dict[str, set[str]] = {}
    for name, given in settings.items():
        words = " ".join(map(str, (SUBJECTS[name].signature, *given.values())))
        kinds.setdefault(words, set()).add(name)
    flat = f"batch {MIXES}"
    assert kinds == {
        "speculative_sampling": {
            "transformers", "transformers-ensemble", "transformers-gemma4", "hsd", "hsd-block",
        },
        "evaluate_posterior": {"eagle", "hsd-eagle", "medusa-typical", "medusa-nucleus", "rest"},
        "batch ()": {"sglang-dspark", "sglang-uno", "flashspec"},
        "batch ('greedy',)": {"lmdeploy", "lmdeploy-triton", "sglang", "sglang-block"},
        flat: runner | {"vllm", "vllm-synthetic", "vllm-fly", "vllm-ascend"},
        f"{flat} 6": {"vllm-ascend-block"},
        "sampler (1,)": {"mlx-lm", "mlx-dspark", "dspark-mlx", "mtplx", "deepspec", "dflash"},
        "sampler (1, 2)": {"economize"},
        f"sampler (1,) {SUBJECTS['specexec-specinfer'].settings['trees']}": {"specexec-specinfer"},
        "round": {"gpt-fast", "litgpt", "litgpt-top-p", "mini-infer", "specdec", "transformers-round"},
        "round_batch": {"vllm-v2-round"},
        "generate": {"triforce", "sequoia", "layerskip", "mcsd", "mcsd-replacement", "mcsd-naive"},
    }  # fmt: skip
    assert {name for name, subject in SUBJECTS.items() if not subject.in_all} == {
        "litgpt-top-p", "transformers-round", "vllm-v2-round",
    }  # fmt: skip
    assert {name: dict(subject.options) for name, subject in SUBJECTS.items() if subject.options} == {
        "transformers-ensemble": {"assistant_ensemble_weight": 0.5},
        "sglang-block": {"block_verification": True},
        "vllm-synthetic": {"synthetic_mode": True, **stated_laws.SYNTHETIC},
        "vllm-fly": stated_laws.FLY,
        "vllm-v2-block": {"use_block_verification": True},
        "vllm-v2-synthetic": stated_laws.SYNTHETIC,
        "vllm-v2-fly": stated_laws.FLY,
        "hsd": {"backward": True, "clever": True},
        "hsd-block": {"blockwise": True},
        "hsd-eagle": {"hsd": True},
        "litgpt-top-p": {"top_p": 0.7},
        "medusa-nucleus": {"sampling": "nucleus", "top_p": 1.0},
        "rest": {"top_p": 0.9999999},
        "mcsd-replacement": {"replacement": True},
        "mcsd-naive": {"speculative_sampling": False},
    }
    drafters = {name: subject.drafter.name for name, subject in SUBJECTS.items() if subject.drafter}
    assert drafters == {
        "transformers-gemma4": "SinglePositionMultiTokenCandidateGenerator",
        "vllm-v2-round": "gumbel_sample",
    }


def test_files_of_libraries_are_short() -> None:
    """Each is an adapter, and not a program."""
    for file in (ROOT / "audits" / "libraries").glob("*.py"):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 120, file


def test_a_fork_under_another_name(tmp_path: Path) -> None:
    """Its modules and what is given to it have the fork's name; a name that is no library is refused."""
    released(tmp_path, "aphrodite.sample.rejection_sampler", FLAT)
    (tmp_path / "aphrodite" / "__init__.py").touch()
    forks = {"vllm-ascend": tmp_path / "aphrodite"}
    (found,), _ = load_samplers("vllm-ascend", None, None, forks)
    assert found.provenance.file == "aphrodite/sample/rejection_sampler.py"
    assert defect_of(found) < 1e-6
    with pytest.raises(UnknownNameError, match="did you mean 'vllm-ascend'"):
        load_samplers("vllm-ascend", None, None, {"vllm-ascent": tmp_path})
    library = SUBJECTS["vllm"].renamed("aphrodite").library
    assert "aphrodite.triton_utils" in library.given


def test_fetched_code_has_a_provenance_and_another_version_says_so(tmp_path: Path) -> None:
    """A copy under another version runs all the same; its bytes decide whether it is known."""
    fetched("sglang-0.5.23")
    known = load_subject("sglang-block", CACHE)
    assert (known.provenance.package, known.provenance.version, known.note) == ("sglang", "0.5.23", "")
    file = "sglang/kernels/ops/speculative/reject_sampling.py"
    assert known.provenance.file == file
    copied = tmp_path / "sglang-0.6.0" / file
    copied.parent.mkdir(parents=True)
    shutil.copy(CACHE / "sglang-0.5.23" / file, copied)
    shutil.copy(CACHE / "sglang-0.5.23" / "wheel.json", tmp_path / "sglang-0.6.0")
    found = load_subject("sglang-block==0.6.0", tmp_path)
    assert (found.name, found.provenance.version, found.note) == ("sglang-block==0.6.0", "0.6.0", "")
    with copied.open("a") as opened:
        opened.write("\n")
    assert "not one that the adapter was tested with (0.5.23)" in load_subject("sglang==0.6.0", tmp_path).note


def test_what_is_not_there_is_one_line(tmp_path: Path) -> None:
    for name, version in (("sglang", "0.5.23"), ("transformers==5", "5")):
        with pytest.raises(InvalidInputError, match=rf"run: spectheory audit fetch \w+=={version} --cache"):
            load_subject(name, tmp_path)


@first_is_quick("kind", ["git checkout", "unpacked sources", "package folder", "editable install"])
def test_a_checkout(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed line is found, and lossless again once it is restored; nothing of the package is imported."""
    inside = {"git checkout": "src", "unpacked sources": "vllm_ascend-1.2"}.get(kind, "")
    root = made_up(tmp_path / inside)
    asked, version = tmp_path, ""
    if kind == "git checkout":
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v3"]):
            options = ["-c", "user.name=x", "-c", "user.email=x"]
            subprocess.run(["git", "-C", str(tmp_path), *options, *command], check=True)
        version = "v3"
    elif kind == "unpacked sources":
        (root / "PKG-INFO").write_text("Metadata-Version: 2.1\nVersion: 1.2\n")
        version = "1.2"
    elif kind == "package folder":
        asked = tmp_path / "vllm_ascend"
    else:
        (tmp_path / "vllm_ascend-4.dist-info").mkdir()
        (tmp_path / "vllm_ascend-4.dist-info" / "METADATA").write_text("Name: vllm-ascend\nVersion: 4\n")
        monkeypatch.syspath_prepend(tmp_path)
    file = root / "vllm_ascend" / "sample" / "rejection_sampler.py"
    for text, is_wrong in ((FLAT.replace(*WRONG), True), (FLAT, False)):
        file.write_text(text)
        checkout = None if kind == "editable install" else asked
        sampler = load_subject("vllm-ascend", checkout=checkout)
        assert (defect_of(sampler) > 1e-6) is is_wrong
        changed = "-dirty" * (is_wrong and kind == "git checkout")
        wanted = "4" if kind == "editable install" else version + changed
        assert sampler.provenance.version == wanted
        assert "tested with (0.23.0)" in sampler.note


def test_a_function_that_moved(tmp_path: Path) -> None:
    """It is found by its name and its parameters, or refused in one line."""
    root = made_up(tmp_path, module="vllm_ascend.moved")
    released(root, "vllm_ascend.other", "def rejection_sample(tokens):\n    return tokens\n")
    found = load_subject("vllm-ascend", checkout=root)
    assert found.provenance.file == "vllm_ascend/moved.py"
    assert "no tested release has it in vllm_ascend/moved.py" in found.note
    released(root, "vllm_ascend.also", FLAT)
    with pytest.raises(
        InvalidInputError, match=r"several files .*: vllm_ascend/also\.py, vllm_ascend/moved\.py"
    ):
        load_subject("vllm-ascend", checkout=root)
    for file in ("also", "moved"):
        (root / "vllm_ascend" / f"{file}.py").unlink()
    with pytest.raises(
        InvalidInputError, match=r"other\.py: rejection_sample requires tokens, which the adapter"
    ):
        load_subject("vllm-ascend", checkout=root)
    released(root, "vllm_ascend.third", "def rejection_sample(rows):\n    return rows\n")
    with pytest.raises(
        InvalidInputError, match=r"other\.py: .*; .*third\.py: rejection_sample requires rows"
    ):
        load_subject("vllm-ascend", checkout=root)
    for name in ("other", "third"):
        (root / "vllm_ascend" / f"{name}.py").unlink()
    with pytest.raises(InvalidInputError, match=r"no file of .* has rejection_sample$"):
        load_subject("vllm-ascend", checkout=root)
    renamed = FLAT.replace("rejection_sample(", "rejection_sampel(")
    released(root, "vllm_ascend.sample.rejection_sampler", renamed)
    with pytest.raises(InvalidInputError, match=r"rejection_sampler\.py has rejection_sampel$"):
        load_subject("vllm-ascend", checkout=root)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vllm-ascend-block", "reads no settings, so it has no block verification"),
        ("vllm-ascend==1", "names a version, and a checkout has its own"),
        ("sglang", r"has no package sglang; --from takes a folder that contains sglang/"),
    ],
)
def test_what_a_checkout_does_not_have(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=says):
        load_subject(name, checkout=made_up(tmp_path))


def test_an_option_that_a_release_lacks(tmp_path: Path) -> None:
    """It is said of the release, and the sampler is not blamed."""
    released(tmp_path, "vllm.v1.sample.rejection_sampler", FLAT)
    (tmp_path / "vllm" / "__init__.py").touch()
    with pytest.raises(
        InvalidInputError, match="rejection_sample has no parameter fly_entropy_threshold, fly"
    ):
        load_subject("vllm-fly", checkout=tmp_path)
    assert defect_of(load_subject("vllm", checkout=tmp_path)) < 1e-6


def test_the_temperature_of_greedy_requests_is_the_releases_own(tmp_path: Path) -> None:
    """-1 in early releases, which take a request of temperature 0 for one that is sampled."""
    text = FLAT.replace("temperature[request] == 0", "temperature[request] == GREEDY_TEMPERATURE")
    assert text != FLAT
    for constant in ("GREEDY_TEMPERATURE = -1\n", "GREEDY_TEMPERATURE = 0\n"):
        sampler = load_subject("vllm-ascend", checkout=made_up(tmp_path, constant + text))
        assert defect_of(sampler) < 1e-6
        greedy = FIRST._replace(is_greedy=True)
        assert sampler.batch_law([greedy])[0] == {((0, 0),): 1}
