"""Build the wheel and the source distribution, and run each as a stranger would who has only that file.

    python scripts/distribution.py                    every environment, the table to build/distribution.md
    python scripts/distribution.py wheel wheel[frames]  these alone

Every environment is new, and lies outside of the checkout: pip installs the file with one extra, or none,
and the commands of that extra run in an empty folder.  Exit code 1: one failed, or the wheel is too large.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST, TABLE = ROOT / "build" / "dist", ROOT / "build" / "distribution.md"
LARGEST_WHEEL_MB = 20
PAIR = (
    '{"format": "spectheory-pair/1", "vocab": ["A", "B"], "draft_length": 2, "context_free": true, '
    '"target": ["1/3", "2/3"], "draft": ["2/3", "1/3"]}'
)
THEORY = [
    "spectheory certify pair.json --verifier block",
    "spectheory optimum pair.json --drafts 2",
    "spectheory certify --suite quick --verifier block",
    "spectheory prove token --vocab-size 2 --draft-length 1 --out token.proof",
    "spectheory prove --check token.proof",
    "python readme.py",
]
AUDIT = f"spectheory audit transformers --adapters {ROOT / 'audits'} --vocab 2 --draft-length 1"
"""A wheel has no adapters."""
COMMANDS = {
    "": THEORY,
    "models": [
        "spectheory simulate --max-new-tokens 0 -l 2 -k 1 --samples 2",
        AUDIT,
    ],
    "audit": ["python -c 'import triton'", AUDIT],
    "notebooks": ["jupyter execute notebooks/0[1-69]*.ipynb notebooks/1[023]*.ipynb"],
    "figures": ["python -c 'import matplotlib, networkx'", "spectheory models list"],
    "gguf": ["python -c 'import gguf, accelerate'", "spectheory models list"],
    "cluster": ["python -c 'import distributed'", "spectheory models list"],
    "frames": ["python frame.py"],
    "testing": ["python -m pytest -q test_mine.py"],
}
README = "\n".join(re.findall("```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL))
"""The blocks of the README in Python."""
FRAME = "from spectheory import instances, optimum\nprint(optimum(instances.two_token(2), 2).to_frame())\n"
TEST = (
    "from spectheory.testing import assert_lossless, strategies\n\n\n"
    "def test_block():\n    assert_lossless('block', quick=True)\n"
)


def build() -> dict[str, Path]:
    """The files of the distribution by their kind."""
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", DIST, ROOT], check=True, stdout=subprocess.DEVNULL
    )
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    foreign = [name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith("spectheory")]
    if foreign:
        raise SystemExit(f"error: the wheel holds {foreign[0]}, which is not of the package")
    return {"wheel": wheel, "source": source}


def tried(kind: str, file: Path, extra: str) -> tuple[str, bool]:
    """A row of the table for one environment, and whether all its commands ended well."""
    with tempfile.TemporaryDirectory() as name:
        folder, start = Path(name), time.monotonic()
        (folder / "pair.json").write_text(PAIR, encoding="utf-8")
        (folder / "test_mine.py").write_text(TEST, encoding="utf-8")
        (folder / "readme.py").write_text(README, encoding="utf-8")
        (folder / "frame.py").write_text(FRAME, encoding="utf-8")
        shutil.copytree(ROOT / "notebooks", folder / "notebooks")
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        wanted = f"{file}[{extra}]" if extra else str(file)
        install = ["env/bin/python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wanted]
        subprocess.run(install, check=True, cwd=folder, stderr=subprocess.DEVNULL)
        installed, wrong = time.monotonic() - start, ""
        for command in COMMANDS[extra]:
            paths = {"PATH": f"{folder / 'env' / 'bin'}:{os.environ['PATH']}"}
            done = subprocess.run(
                command, shell=True, cwd=folder, env=os.environ | paths, capture_output=True, text=True
            )
            if done.returncode != 0:
                wrong = f"`{command}` ended with {done.returncode}: {done.stderr.strip()[-200:]}"
                break
        size = sum(path.stat().st_size for path in (folder / "env").rglob("*") if path.is_file()) / 1e6
        ran = time.monotonic() - start - installed
        done_text = wrong or ", ".join(f"`{command}`" for command in COMMANDS[extra])
        what = f"{kind}[{extra}]" if extra else kind
        return f"| {what} | {size:.0f} | {installed:.0f} | {ran:.0f} | {done_text} |", not wrong


def main() -> int:
    files, rows, failed = build(), [], 0
    size = files["wheel"].stat().st_size / 1e6
    environments = sys.argv[1:] or ["source", "wheel", *(f"wheel[{extra}]" for extra in COMMANDS if extra)]
    for environment in environments:
        kind, _, extra = environment.rstrip("]").partition("[")
        row, is_right = tried(kind, files[kind], extra)
        print(row, flush=True)
        rows.append(row)
        failed += not is_right
    sizes = f"Wheel {size:.1f} MB, source distribution {files['source'].stat().st_size / 1e6:.1f} MB."
    head = "| environment | MB installed | seconds to install | seconds to run | ran |\n|---|---|---|---|---|"
    TABLE.write_text(f"{sizes}\n\n{head}\n" + "\n".join(rows) + "\n", encoding="utf-8")
    print(sizes)
    return int(failed > 0 or size > LARGEST_WHEEL_MB)


if __name__ == "__main__":
    sys.exit(main())
