"""The words of a scope say what was refused or left out, and only where there is some."""

from spectheory.foundation.scope import Scope


def test_words_and_document() -> None:
    asked = Scope("exact", "none", ((2, 1, 1), (2, 1, 2)), ("iid",))
    assert asked.in_words() == "(V, L, K) = (2, 1, 1-2)"
    limited = Scope("exact", "none", ((2, 1, 1),), ("iid",), ("torch: no", "torch: off"))
    assert limited.in_words() == "(V, L, K) = (2, 1, 1); refused or left out: torch"
    assert limited.to_document()["refused"] == ["torch: no", "torch: off"]
    assert asked.to_document()["shapes_text"] == "(2, 1, 1-2)"
