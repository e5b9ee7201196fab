"""docs/screens.md: what every command shows in terminals of 80 and 120 columns.

``PYTHONPATH=tests/support python -m screens`` writes the page anew.
"""

import json
import shlex
import tempfile
from functools import cache
from pathlib import Path

from cli_support import OWN_VERIFIER, TWO_TOKEN
from terminal import play

PAGE = Path(__file__).parents[2] / "docs" / "screens.md"
COLUMNS = (80, 120)
SAMPLER = '''
import torch


def verify(paths, target_rows, draft_rows, generator):
    """Token verification that draws from the target after a rejection: not lossless."""
    path, target, draft = paths[0].tolist(), target_rows[0], draft_rows[0]
    for place, token in enumerate(path):
        if torch.rand((), generator=generator) >= target[place, token] / draft[place, token]:
            return [*path[:place], int(torch.multinomial(target[place], 1, generator=generator))]
    return [*path, int(torch.multinomial(target[-1], 1, generator=generator))]
'''
QUICK = (
    "certify pair.json -v my_verifiers:FirstToken",
    "certify pair.json -v my_verifiers:ForgotTheResidual",
    "certify pair.json -v token,block,my_verifiers:ForgotTheResidual",
    "prove my_verifiers:FirstToken --vocab-size 2 -l 1",
    "prove my_verifiers:ForgotTheResidual --vocab-size 2 -l 1",
    "optimum pair.json -k 2",
    "acceptance 1/3,2/3 2/3,1/3 -k 2",
    "verifiers",
    "audit my_sampler:verify --as sampler -k 1 --pair pair.json",
    "plan pair.json --target-rows 4 -v block,greedy_multipath",
)
WITH_MODELS = (
    "simulate -v token,block,my_verifiers:FirstToken -n 0 -l 2 --samples 2",
    "decode -v block -l 2 -n 16",
    'restrict --prompt "import os" --tokens 3 --out small.json',
)
"""Their digits depend on the machine: they are compared without them."""
HEAD = """# Screens

What every command but `models` shows in a terminal of 80 columns and in one of 120. `pair.json` is the pair
of two tokens with draft length 2. `my_verifiers.py` and `my_sampler.py` are a user's; two of their three
algorithms are wrong. Colours are left out. A test plays every command again.
"""


def write_files(folder: Path) -> None:
    (folder / "pair.json").write_text(json.dumps(TWO_TOKEN), encoding="utf-8")
    (folder / "my_verifiers.py").write_text(OWN_VERIFIER, encoding="utf-8")
    (folder / "my_sampler.py").write_text(SAMPLER, encoding="utf-8")


def block(command: str, columns: int, folder: Path) -> str:
    """The command and its screen, as the page has them."""
    played = play(shlex.split(command), folder, columns, 400)
    assert played.screen.too_wide == [], played.screen.too_wide
    return f"$ spectheory {command}\n{played.screen.everything()}"


@cache
def kept() -> dict[tuple[str, int], str]:
    """The screens of the page, by command and columns."""
    found = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        columns = int(part.split()[0])
        for text in part.split("```text\n")[1:]:
            shown = text.split("\n```")[0] + "\n"
            found[shown.splitlines()[0].removeprefix("$ spectheory "), columns] = shown
    return found


def main() -> None:
    lines = [HEAD]
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name))
        for columns in COLUMNS:
            lines.append(f"## {columns} columns\n")
            lines += [
                f"```text\n{block(command, columns, Path(name))}```\n" for command in (*QUICK, *WITH_MODELS)
            ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
