"""The specimen of every adapter: the library's own code with one mistake is found not lossless."""

import shutil
from pathlib import Path

import pytest

from audited import CACHE, fetched
from audits.loading.reached_code import find_function
from audits.loading.sources import found, release_of
from audits.registry import SUBJECTS, load_subject
from deep import first_is_quick
from spectheory import audit, instances
from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.foundation.wheels import Release

QUICK = ("transformers", "sglang")
"""Subjects of libraries that are installed, or fetched by ``make fetched``."""
PAIRS = {"two residual tokens": instances.two_residual_tokens(1), "three drafted": random_dyadic(2, 2, 3)}
MISTAKES = [name for name, subject in SUBJECTS.items() if subject.mistake]


def with_mistake(name: str, release: Release, folder: Path) -> Path:
    """A copy of the modules of a sampler, of which one has the mistake; its text must occur once in them."""
    subject = SUBJECTS[name]
    assert subject.mistake is not None
    before, after = subject.mistake
    modules = find_function(
        release.folder, subject.library.top, subject.function, tuple(subject.library.given)
    ).modules
    texts = {file: file.read_text(encoding="utf-8") for file in modules.values()}
    assert sum(text.count(before) for text in texts.values()) == 1, name
    for file, text in texts.items():
        copied = folder / file.relative_to(release.folder)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(text.replace(before, after), encoding="utf-8")
    return folder


@first_is_quick("name", sorted(MISTAKES, key=lambda name: name not in QUICK), quick=len(QUICK))
def test_the_specimen_of_an_adapter_must_fail(name: str, tmp_path: Path) -> None:
    library = SUBJECTS[name].library
    if name in QUICK:
        release = release_of(library.package, library.top, "", library.tested, CACHE)
    elif not (CACHE / f"{library.package}-{library.tested}").is_dir():
        pytest.skip("run: make audits")
    else:
        release = found(f"{library.package}=={library.tested}", CACHE)
    sampler = load_subject(name, checkout=with_mistake(name, release, tmp_path))
    wrong = audit(sampler, PAIRS, stop_at_first=True)
    assert wrong.is_defective, wrong.headline()


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
    with pytest.raises(AssertionError, match="sglang"):
        with_mistake("sglang", Release("sglang", "0.5.23", tmp_path), tmp_path / "copy")
