"""Audit changed samplers in checkouts: one line of each library's sampler is changed, found, and restored.

    spectheory audit fetch all --cache FILES
    python scripts/audit_checkouts.py FILES --sources SOURCES --repositories CLONES

FILES has the unpacked wheels.  SOURCES has the roots of unpacked source distributions, as ``vllm-0.33.0``.
CLONES has git repositories, as ``mlx-lm``.  A library without a repository there gets a checkout that is made
of the wheel's files, and without a source distribution the archive of its repository's commit.  An editable
install is pip's, with a ``pyproject.toml`` that only names the package: those of the libraries compile
kernels.  The table has the verdict on the changed line and on the restored one.  Nothing is kept.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from spectheory.auditing.rounds.battery import random_dyadic
from spectheory.auditing.subjects.libraries import LIBRARIES
from spectheory.auditing.subjects.sources import INSIDE

ROOT = Path(__file__).parent.parent
CHANGES = {
    "transformers": (
        "transformers/generation/utils.py",
        "p_prime = torch.clamp((p_n_plus_1 - q_n_plus_1), min=0)",
        "p_prime = p_n_plus_1",
    ),
    "sglang": ("sglang/kernels/ops/speculative/reject_sampling.py", "(coin * q < p)", "(coin * q < 2 * p)"),
    "vllm": (
        "vllm/v1/sample/rejection_sampler.py",
        "prob = tl.maximum(target_prob - draft_prob, 0.0)",
        "prob = target_prob",
    ),
    "lmdeploy": (
        "lmdeploy/pytorch/backends/default/rejection_sampling.py",
        "(target_probs - draft_probs).clamp_min_(0)",
        "target_probs",
    ),
    "mlx-lm": (
        "mlx_lm/generate.py",
        "yield tokens[n], logprobs[n], False",
        "yield tokens[0], logprobs[0], False",
    ),
    "vllm-ascend": (
        "vllm_ascend/sample/rejection_sampler.py",
        "target_token_probs / draft_token_probs >= uniform_token_probs",
        "target_token_probs >= uniform_token_probs",
    ),
}
"""Library -> the file, the line, and the wrong line."""
KINDS = ("git checkout", "unpacked sources", "editable install")


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def must(*words: str | Path) -> None:
    done = run(*words)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")


def copied(source: Path, folder: Path, package: str) -> Path:
    """The folder with a copy of the library's package, where the source has it, and of its metadata."""
    top = LIBRARIES[package].top
    inside = next(inside for inside in INSIDE if (source / inside / top).is_dir())
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source / inside / top, folder / inside / top, ignore=ignored)
    for name in ("PKG-INFO", "pyproject.toml"):
        if (source / name).is_file():
            shutil.copy(source / name, folder)
    return folder


def git_checkout(files: Path, folder: Path, package: str) -> list[str | Path]:
    if (files / ".git").exists():
        must("git", "clone", "--quiet", "--shared", files, folder)
    else:
        copied(files, folder, package)
        git = ("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("init", "-q"), ("add", "-f", "."), ("commit", "-qm", "files")):
            must(*git, *words)
    return [sys.executable, "--from", folder]


def unpacked_sources(sources: Path, folder: Path, package: str) -> list[str | Path]:
    copied(sources, folder, package)  # of a repository: without its history, as in an archive
    return [sys.executable, "--from", folder]


def editable_install(files: Path, folder: Path, package: str) -> list[str | Path]:
    """In an environment that has the packages of this one behind its own."""
    copied(files, folder, package)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "{package}"\nversion = "{files.name.removeprefix(f"{package}-")}"\n'
        f'[tool.setuptools]\npackages = ["{LIBRARIES[package].top}"]\n',
        encoding="utf-8",
    )
    environment = folder.parent / "environment"
    venv.create(environment, symlinks=True)
    (inside,) = environment.glob("lib/python*/site-packages")
    (inside / "zz_others.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p) + "\n")
    python = environment / "bin" / "python"
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed")
    options += ("--config-settings", "editable_mode=compat")  # a path, which comes before other packages
    must(sys.executable, "-m", "pip", "--python", python, "install", *options, "--editable", folder)
    return [python]


MAKERS = dict(zip(KINDS, (git_checkout, unpacked_sources, editable_install), strict=True))


def verdicts(package: str, how: list[str | Path], file: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Of the changed file, and of the file as it was, with the version."""
    _, line, wrong = CHANGES[package]
    text = file.read_text(encoding="utf-8")
    if text.count(line) != 1:
        raise SystemExit(f"{file} has the line {text.count(line)} times, expected once: {line}")
    pair = folder / "pair.json"
    random_dyadic(1, 2, 2).save(pair)
    python, *options = how
    for content in (text.replace(line, wrong), text):
        file.write_text(content, encoding="utf-8")
        done = run(python, "-m", "spectheory", "audit", package, *options, "--pair", pair, "--json")
        if done.returncode not in (0, 1, 4):
            yield done.stderr.strip(), ""
            continue
        found = json.loads(done.stdout)
        if not str(Path(found["provenance"]["file"])).endswith(CHANGES[package][0].partition("/")[2]):
            raise SystemExit(f"another file was audited: {found['provenance']}")
        print(package, options, found["provenance"], found["reasons"], file=sys.stderr, flush=True)
        yield found["verdict"], found["provenance"]["version"]


def cell(package: str, kind: str, files: Path, sources: Path, repositories: Path) -> str:
    """The verdicts, the version and the time; empty where the library has no such form."""
    homes = {KINDS[0]: (repositories, files), KINDS[1]: (sources, repositories), KINDS[2]: (files,)}
    inside = (each for home in homes[kind] for each in sorted(home.iterdir()))
    there = [each for each in inside if re.fullmatch(rf"{package}(-\d.*)?", each.name)]
    if not there:
        return ""
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        (inner := Path(folder) / "library").mkdir()
        how = MAKERS[kind](there[0], inner, package)
        (file,) = inner.rglob(CHANGES[package][0])
        found, (*_, version) = zip(*verdicts(package, how, file, Path(folder)), strict=True)
    return f"{', then '.join(found)}: {version or 'no version'}, {time.monotonic() - start:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--library", choices=CHANGES, action="append")
    asked = parser.parse_args()
    print(f"| library | {' | '.join(KINDS)} |\n|---|---|---|---|")
    for package in asked.library or CHANGES:
        cells = [cell(package, kind, asked.files, asked.sources, asked.repositories) for kind in KINDS]
        print(f"| `{package}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
