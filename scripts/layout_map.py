"""Draw the rooms of the package from the contract in pyproject.toml, which ``lint-imports`` checks.

``python scripts/layout_map.py`` writes ``docs/assets/layout.svg``.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "assets" / "layout.svg"
HEIGHT = 34
"""Of a row, in pixels."""


def rooms() -> list[str]:
    """The rooms, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [layers] = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return list(layers)


def picture(names: list[str]) -> str:
    """A box per room; a room imports from those below it."""
    grey, width, height = 'stroke="#5b6f86"', len(max(names, key=len)) * 9 + 80, len(names) * HEIGHT
    inside = [f"<title>Imports go downwards: {', '.join(names)}</title>"]
    arrow = f"M20 6V{height - 6}M14 {height - 14}L20 {height - 6}L26 {height - 14}"
    inside.append(f'<path d="{arrow}" fill="none" {grey}/>')
    for number, name in enumerate(names):
        place = f'x="40" y="{number * HEIGHT + 3}" width="{width - 43}" height="{HEIGHT - 6}"'
        inside.append(f'<rect {place} rx="5" fill="#eef1f5" {grey}/>')
        middle = f'x="{20 + width // 2}" y="{number * HEIGHT + 22}"'
        inside.append(f'<text {middle} text-anchor="middle">{name}</text>')
    size = f'viewBox="0 0 {width} {height}" width="{width}"'
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="14">'
    )
    return "\n".join([start, *inside, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(picture(rooms()), encoding="utf-8")
