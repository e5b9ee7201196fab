"""The prompts of a study and their domains."""

from pathlib import Path

import pytest

from spectheory.foundation.errors import InvalidInputError
from spectheory.paper import read_study_prompts


@pytest.mark.parametrize(
    ("content", "domains"),
    [
        (
            '{"text": "a", "domain": "code", "source": "b"}\n\n'
            '{"domain": "chat", "text": "\N{LINE SEPARATOR}"}',
            ["code", "chat"],
        ),
        ('[{"text": "a", "domain": "code"},\n {"text": "b", "domain": "chat"}]', ["code", "chat"]),
        ('{"text": "a"}\n"b"\n[1, 2]', ["prompts"] * 3),
        ("a\nb", ["prompts"] * 2),
    ],
)
def test_domains_of_prompts(tmp_path: Path, content: str, domains: list[str]) -> None:
    (tmp_path / "prompts").write_text(content, encoding="utf-8")
    assert [prompt.domain for prompt in read_study_prompts(tmp_path / "prompts")] == domains


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"text": "a", "domian": "code"}', "line 1 has the key 'domian'; did you mean 'domain'?"),
        ('{"text": "a", "domain": "code"}\n{"text": "b"}', "line 2 has no domain, and others have one"),
        ('{"text": "a", "domain": 3}', "line 1 has the domain 3; expected a printable text"),
        ('{"text": "a", "domain": null}', "line 1 has the domain None; expected"),
        ('[{"text": "a", "domain": "=evil"}]', "entry 1 has the domain '=evil'; expected"),
        ('{"text": "a", "domain": ""}', "line 1 has the domain ''; expected"),
    ],
)
def test_domains_that_are_refused(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "prompts").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError) as caught:
        read_study_prompts(tmp_path / "prompts")
    assert words in str(caught.value)
