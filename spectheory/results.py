"""What every result has in common: it is short to print, a table in a notebook, a row of a data frame.

A result supplies ``to_document``, the JSON object of its command, and ``facts``, what a person is shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any

from spectheory.extras import installed

if TYPE_CHECKING:
    import pandas


class Result(ABC):
    """A result of the package.  Results of one kind are equal if their documents are."""

    @abstractmethod
    def to_document(self) -> dict[str, Any]:
        """The JSON object: rationals are texts such as ``"20/9"``."""

    @abstractmethod
    def headline(self) -> str:
        """The result in one line."""

    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """What a person is shown, as (what, text)."""

    def to_frame(self) -> pandas.DataFrame:
        """The document as a data frame of one row; nested objects stay as they are.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        with installed():
            import pandas

        return pandas.DataFrame([self.to_document()])

    def __repr__(self) -> str:
        return f"<{self.headline()}>"

    def _repr_html_(self) -> str:
        return html_table(self.headline(), self.facts())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.to_document() == self.to_document()

    def __hash__(self) -> int:
        return hash(self.headline())


def html_table(title: str, rows: list[tuple[str, str]]) -> str:
    """A table with a caption, one row per fact.

    Example:
        >>> html_table("block", [("pair", "2 < 3 tokens")])
        '<table><caption>block</caption><tr><th>pair</th><td>2 &lt; 3 tokens</td></tr></table>'
    """
    body = "".join(f"<tr><th>{escape(what)}</th><td>{escape(text)}</td></tr>" for what, text in rows)
    return f"<table><caption>{escape(title)}</caption>{body}</table>"
