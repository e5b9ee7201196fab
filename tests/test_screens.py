"""The page of screens shows what the commands show."""

import re
from pathlib import Path

import pytest

import screens

NARROW = min(screens.COLUMNS)
PLACES = [
    (command, columns) for command in (*screens.QUICK, *screens.WITH_MODELS) for columns in screens.COLUMNS
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screens")
    screens.write_files(folder)
    return folder


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        pytest.param(
            *place, marks=[pytest.mark.deep] * (place[0] in screens.WITH_MODELS or place[1] != NARROW)
        )
        for place in PLACES
    ],
)
def test_the_page_shows_the_screen(command: str, columns: int, folder: Path) -> None:
    found, kept = screens.block(command, columns, folder), screens.kept()[command, columns]
    if command in screens.WITH_MODELS:
        found, kept = (re.sub(r" *[\d.]+", "#", text) for text in (found, kept))
    assert found == kept
    assert max(map(len, found.splitlines()[1:])) <= columns


def test_partner_another_screen_is_seen(folder: Path) -> None:
    command = "optimum pair.json -k 2"
    assert screens.block(command.replace("2", "1"), 80, folder) != screens.kept()[command, 80]
    assert {*screens.kept()} == {*PLACES}
