"""Print the lowest versions that pyproject.toml allows, as a file of constraints for pip.

python scripts/lowest_versions.py > build/lowest.txt
pip install -c build/lowest.txt ".[audit,proof,frames,testing]"
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
NOT_TO_BE_HAD = {"torch": "2.13.0", "sympy": "1.13.3"}
"""Lowest versions that the index of these machines has, where they are later."""


def requirements() -> list[str]:
    """The dependencies and those of all extras, but for development."""
    extras = PROJECT["optional-dependencies"].items()
    return [*PROJECT["dependencies"], *(entry for extra, some in extras if extra != "dev" for entry in some)]


def lowest() -> dict[str, str]:
    """Package -> lowest version."""
    return dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(requirements()), re.MULTILINE)) | NOT_TO_BE_HAD


if __name__ == "__main__":
    for package, version in lowest().items():
        print(f"{package}=={version}")
