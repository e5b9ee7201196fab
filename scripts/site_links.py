"""Every link of a built site leads to a file of it, and to an id where it names one.

    python scripts/site_links.py build/site

Prints the links that do not, and exits with 1 if there are any.  Links to other servers are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


def dead_links(site: Path) -> list[str]:
    """One line for every link that leads nowhere, "page: link"."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    complaints = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            base = site if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path.resolve()
            if target.is_dir():
                target /= "index.html"
            found = pages.get(site / target.relative_to(site.resolve())) if target.exists() else None
            anchor = unquote(parts.fragment)
            is_there = target.exists() and (not anchor or found is None or anchor in found.ids)
            if not is_there:
                complaints.append(f"{path.relative_to(site)}: {link}")
    return complaints


def main() -> int:
    """The command."""
    site = Path(sys.argv[1])
    complaints = dead_links(site)
    for line in complaints:
        print(f"dead link: {line}", file=sys.stderr)
    print(f"{len(list(site.rglob('*.html')))} pages, {len(complaints)} dead links")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
