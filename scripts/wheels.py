"""Ask the index whether it has a wheel of every dependency for each Python and system; nothing is downloaded.

    python scripts/wheels.py        a table in Markdown: the newest version per system, or what is missing

`pip index versions` of pip 26 answers by the tags of the wheels; older ones list sources too.  The compiled
libraries that a dependency needs in turn are asked about too; their sources would need a compiler.
"""

import re
import subprocess
import sys
from collections import defaultdict

from lowest_versions import lowest, requirements
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LINUX = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 26, 24, 17, 12, 5)] + ["manylinux2014_x86_64"]
SYSTEMS = {"Linux": LINUX, "macOS": ["macosx_14_0_arm64"], "Windows": ["win_amd64"]}
IN_TURN = ["clarabel", "osqp", "scs", "llvmlite", "regex", "hf-xet"]
ONLY_ON = {"triton": ["Linux"]}
ALLOWED: defaultdict[str, SpecifierSet] = defaultdict(SpecifierSet)
ALLOWED.update((one.name, one.specifier) for one in map(Requirement, requirements()))


def newest(package: str, python: str, platforms: list[str], implementation: str = "cp") -> str:
    """The newest allowed version with a wheel; empty if there is none."""
    options = [word for platform in platforms for word in ("--platform", platform)]
    options += ["--python-version", python, "--implementation", implementation, "--only-binary=:all:"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "index", "versions", package, *options], capture_output=True, text=True
    )
    found = re.search("Available versions: (.*)", done.stdout)
    allowed = [version for version in found[1].split(", ") if version in ALLOWED[package]] if found else []
    return allowed[0] if allowed else ""


def numbers(version: str) -> list[int]:
    """A version that can be compared."""
    return [int(number) for number in re.findall(r"\d+", version)]


def main() -> None:
    print(f"| package | {' | '.join(SYSTEMS)} |\n|---{'|---' * len(SYSTEMS)}|")
    bounds = lowest()
    for package in sorted([*bounds, *IN_TURN]):
        everywhere = newest(package, PYTHONS[-1], ["any"], "py")
        if everywhere and numbers(everywhere) >= numbers(bounds.get(package, "0")):
            print(f"| {package} |{f' {everywhere} |' * len(SYSTEMS)}", flush=True)
            continue
        cells = []
        for system, platforms in SYSTEMS.items():
            if system not in ONLY_ON.get(package, SYSTEMS):
                cells.append("not needed")
                continue
            found = {python: newest(package, python, platforms) for python in PYTHONS}
            missing = [python for python, version in found.items() if not version]
            versions = " / ".join(dict.fromkeys(filter(None, found.values())))
            cells.append(versions + (f"; none for {', '.join(missing)}" if missing else ""))
        print(f"| {package} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
