"""docs/adapters.md: its adapter, in a copy of the folder, audits its library, right and with the mistake."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from audits.registry import SUBJECTS
from spectheory.auditing.subjects.adapters import find_adapters, load_adapters, load_subject
from spectheory.command_line.main import main
from spectheory.foundation.errors import InvalidInputError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")


def block(file: str) -> str:
    return PAGE.partition(f"`{file}`:")[2].partition("```python\n")[2].partition("```")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The adapters with one more; what was imported from the folder of the repository comes back."""
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "audits"}
    copied = tmp_path / "kept" / "audits"
    shutil.copytree(ROOT / "audits", copied, ignore=shutil.ignore_patterns("__pycache__"))
    text = block("audits/libraries/my_engine.py")
    (copied / "libraries" / "my_engine.py").write_text(text, encoding="utf-8")
    yield copied
    for name in [name for name in sys.modules if name.partition(".")[0] == "audits"]:
        del sys.modules[name]
    sys.modules.update(before)


def test_the_adapter_of_the_page(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lossless as it says, not lossless with its mistake, and in the list."""
    monkeypatch.chdir(tmp_path)
    library = block("my_engine.py")
    before, after = load_adapters(folder).SUBJECTS["my-engine"].mistake
    asked = ["--vocab", "2-3", "--draft-length", "1", "--adapters", str(folder), "--json"]
    for text, verdict in ((library, "lossless"), (library.replace(before, after), "not lossless")):
        (tmp_path / "my_engine.py").write_text(text, encoding="utf-8")
        assert main(["audit", "my-engine", "--from", ".", *asked]) == (verdict != "lossless")
        assert json.loads(capsys.readouterr().out)["verdict"] == verdict
    assert main(["audit", "list", "--adapters", str(folder.parent), "--json"]) == 0
    listed = {row["sampler"]: row["verdict"] for row in json.loads(capsys.readouterr().out)["samplers"]}
    assert listed["my-engine"] == "lossless"
    assert len(listed) == len(SUBJECTS) + 1


def test_where_adapters_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the working tree, then where they are said to be; else one line says how to get them."""
    monkeypatch.chdir(ROOT / "docs")
    assert find_adapters() == ROOT / "audits"
    monkeypatch.chdir(tmp_path)
    assert find_adapters(ROOT) == ROOT / "audits"
    (tmp_path / "audits").mkdir()  # a folder of somebody's own
    with pytest.raises(InvalidInputError, match=r"run inside of it, or give --adapters FOLDER$"):
        load_subject("transformers")
    with pytest.raises(InvalidInputError, match=r"has no registry\.py; --adapters takes"):
        find_adapters(tmp_path)
    assert load_subject("transformers", ROOT / "audits").name == "transformers"
