"""The quick tests take a part of long lists: every list that is named is there, and a part of it is quick."""

import ast

import pytest

from shares import ONE_IN, TESTS


@pytest.mark.parametrize("file", ONE_IN)
def test_every_list_is_one_of_the_file(file: str) -> None:
    functions = {
        node.name: node.decorator_list
        for node in ast.parse((TESTS / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    for name, one_in in ONE_IN[file].items():
        assert one_in == 0 or (one_in > 1 and functions[name])
        assert name in functions
