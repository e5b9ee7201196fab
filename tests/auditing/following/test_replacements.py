"""Replacements: everything is put back, whatever happens."""

import random

import pytest

from spectheory.auditing.following.replacements import replaced


class Parent:
    word = "parent"

    @staticmethod
    def static() -> str:
        return "static"


class Child(Parent):
    own = "child"


def test_everything_is_as_before() -> None:
    """Own and inherited attributes, a static method, a module; one replaced twice; after an error too."""
    before = dict(vars(Child)), dict(vars(Parent)), random.random
    changes = [
        (Child, "word", "first"),
        (Child, "own", "first"),
        (Child, "own", "second"),
        (Parent, "static", lambda: "other"),
        (random, "random", lambda: 2.0),
    ]

    def fails() -> None:
        with replaced(changes):
            assert (Child.word, Child.own, Parent.word) == ("first", "second", "parent")
            assert Parent.static() == "other"
            assert random.random() == 2.0
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert (dict(vars(Child)), dict(vars(Parent)), random.random) == before


def test_what_is_not_there_is_refused() -> None:
    """And what was replaced before it is put back."""
    with pytest.raises(AttributeError), replaced([(Child, "own", "other"), (Child, "none", 1)]):
        raise AssertionError
    assert Child.own == "child"
    assert not hasattr(Child, "none")
