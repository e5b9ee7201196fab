"""The partner of every adapter: a mistake makes right code not lossless, a mend makes wrong code lossless."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from audited import CACHE, fetched
from audits.loading.reached_code import find_function
from audits.loading.sources import found, release_of
from audits.registry import SUBJECTS, load_subject
from deep import first_is_quick
from spectheory import audit, instances
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.signatures import GENERATE
from spectheory.foundation.wheels import Release
from spectheory.pairs.pair import ModelPair

QUICK = ("transformers", "sglang")
"""Subjects of libraries that are installed, or fetched by ``make fetched``."""
PAIRS = {"two residual tokens": instances.two_residual_tokens(1), "three drafted": random_dyadic(2, 2, 3)}
LOOP_PAIRS = {"two residual tokens": instances.two_residual_tokens(1), "two drafted": random_dyadic(2, 2, 2)}
"""Of loops, whose texts have several rounds."""
MISTAKES = [name for name, subject in SUBJECTS.items() if subject.mistake]
MENDS = [name for name, subject in SUBJECTS.items() if subject.mend]


def edited(name: str, edits: Sequence[tuple[str, str]], release: Release, folder: Path) -> Path:
    """A copy of the modules of a sampler with other texts; each text must occur once in them."""
    subject = SUBJECTS[name]
    modules = find_function(
        release.folder, subject.library.top, subject.function, tuple(subject.library.given)
    ).modules
    texts = {file: file.read_text(encoding="utf-8") for file in modules.values()}
    for before, after in edits:
        assert sum(text.count(before) for text in texts.values()) == 1, (name, before)
        texts = {file: text.replace(before, after) for file, text in texts.items()}
    for file, text in texts.items():
        copied = folder / file.relative_to(release.folder)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(text, encoding="utf-8")
    return folder


def pairs_of(name: str) -> dict[str, ModelPair]:
    return LOOP_PAIRS if SUBJECTS[name].signature == GENERATE else PAIRS


def release_for(name: str) -> Release:
    """The tested version, or a skip where it is not fetched."""
    library = SUBJECTS[name].library
    if name in QUICK:
        return release_of(library.package, library.top, "", library.tested, CACHE)
    if not (CACHE / f"{library.package}-{library.tested}").is_dir():
        pytest.skip("run: make audits")
    return found(f"{library.package}=={library.tested}", CACHE)


@first_is_quick("name", sorted(MISTAKES, key=lambda name: name not in QUICK), quick=len(QUICK))
def test_the_specimen_of_an_adapter_must_fail(name: str, tmp_path: Path) -> None:
    mistake = SUBJECTS[name].mistake
    assert mistake is not None
    sampler = load_subject(name, checkout=edited(name, [mistake], release_for(name), tmp_path))
    wrong = audit(sampler, pairs_of(name), stop_at_first=True)
    assert wrong.is_defective, wrong.headline()


@pytest.mark.deep
@pytest.mark.parametrize("name", MENDS)
def test_wrong_code_is_lossless_once_it_is_mended(name: str, tmp_path: Path) -> None:
    """And not before, nor where one of several mends is missing."""
    mend, release = SUBJECTS[name].mend, release_for(name)
    for missing in range(len(mend)):
        rest = [*mend[:missing], *mend[missing + 1 :]]
        sampler = load_subject(name, checkout=edited(name, rest, release, tmp_path / str(missing)))
        wrong = audit(sampler, pairs_of(name), stop_at_first=True)
        assert wrong.is_defective, wrong.headline()
    right = audit(
        load_subject(name, checkout=edited(name, mend, release, tmp_path / "right")), pairs_of(name)
    )
    assert right.is_lossless, right.headline()


def test_partner_a_text_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """And the released code itself passes on these pairs."""
    release = Release("sglang", "0.5.23", fetched("sglang-0.5.23"))
    right = audit(
        load_subject("sglang", CACHE),
        {"two residual tokens": PAIRS["two residual tokens"]},
        stop_at_first=True,
        quick=True,
    )
    assert right.is_lossless
    shutil.copytree(release.folder / "sglang" / "kernels", tmp_path / "sglang" / "kernels")
    for file in tmp_path.rglob("reject_sampling.py"):
        file.write_text(file.read_text(encoding="utf-8").replace("coin * q < p", "coin * q > p"))
    mistake = SUBJECTS["sglang"].mistake
    assert mistake is not None
    with pytest.raises(AssertionError, match="sglang"):
        edited("sglang", [mistake], Release("sglang", "0.5.23", tmp_path), tmp_path / "copy")
