"""A question settled once: which verifier is meant, made once, bound once; and names that name none."""

import sys
from pathlib import Path

import pytest

from deep import first_is_quick
from spectheory import certify, instances, output_law
from spectheory.foundation.errors import InvalidInputError, UnknownNameError
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms import verifiers
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import UserVerifier
from user_verifiers import UserBlock

MODULES = {
    "syntax": ("def f(:\n    pass\n", r"importing syntax failed: SyntaxError: .*syntax\.py, line 1\)"),
    "division": (
        "x = 1\ny = 1 / 0\n",
        r"importing division failed: ZeroDivisionError: .*division\.py, line 2\)",
    ),
    "leaving": ("import sys\nsys.exit('bye')\n", r"importing leaving failed: SystemExit: bye \(.*line 2\)"),
    "importing": (
        "import no_such_library\n",
        "cannot import the verifier .* No module named 'no_such_library'",
    ),
    "making": (
        "class Own:\n    def __init__(self):\n        raise ValueError('set me up')\n",
        r"making making:Own failed: ValueError: set me up \(.*making\.py, line 3\)",
    ),
    "arguments": (
        "class Own:\n    def __init__(self, size):\n        pass\n",
        "making arguments:Own failed: TypeError",
    ),
    "nothing": ("Own = 3\n", "3 is not a verifier; expected .* -> Outcome$"),
    "function": (
        "def Own(*_):\n    return [0]\n",
        "not a verifier; .* and from_sampler or from_loop makes one",
    ),
    "missing": ("x = 1\n", "no attribute of module 'missing' is called 'Own'; there is none"),
}


@pytest.mark.parametrize(
    ("module", "source", "says"), [(m, *rest) for m, rest in MODULES.items()], ids=MODULES
)
def test_modules_that_cannot_be_used(
    module: str, source: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidInputError, match=says) as caught:
        find_verifier(f"{module}:Own")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [":X", "../x:Y", "x:", "a b:c", "module:a..b", "1:x", "a..b:c", "::"])
def test_names_that_name_nothing(name: str) -> None:
    with pytest.raises(UnknownNameError, match="names no verifier; expected package"):
        find_verifier(name)


class Counted(UserBlock):
    name = "counted"
    made = 0

    def __init__(self) -> None:
        type(self).made += 1


def test_a_named_class_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """``module:Class`` is built once per question, not once per use."""
    monkeypatch.setitem(__import__("sys").modules, "a_users_module", type("Module", (), {"Counted": Counted}))
    Counted.made = 0
    certificate = certify("a_users_module:Counted", instances.two_token(2))
    assert Counted.made == 1
    assert certificate.verifier == "counted"
    assert isinstance(certificate.law.verifier, UserVerifier)


@pytest.mark.parametrize("name", ["token.py", "rich.py", "scipy"])
def test_a_module_with_the_name_of_a_library(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the current directory it is hidden by the library, or hides it; elsewhere the library is meant."""
    monkeypatch.setattr("sys.path", list(sys.path))  # where the current folder is put
    monkeypatch.chdir(tmp_path)
    top = name.partition(".")[0]
    with pytest.raises(UnknownNameError, match="no attribute of module"):
        find_verifier(f"{top}:Own")
    (tmp_path / name).write_text("class Own: ...\n") if name.endswith(".py") else (tmp_path / name).mkdir()
    with pytest.raises(UnknownNameError, match=f"{top} in the current directory has the name of a module of"):
        find_verifier(f"{top}:Own")


def test_the_law_carries_its_verifier() -> None:
    law = output_law("optimal_multipath", instances.two_token(1), 3)
    assert law.verifier.name == "optimal_multipath"
    assert law.verifier is not verifiers["optimal_multipath"]
    assert law.process == Iid(3)


@first_is_quick("num_drafts", [1, 2])
def test_a_pairs_optimum_does_not_depend_on_who_is_judged(num_drafts: int) -> None:
    """Equal models, where every value near L + 1 invites a correction; and an unlucky float pair."""
    pairs = [instances.random_float(7, 3, 3, agreement=1.0), instances.two_token(6).to_float()]
    for pair in pairs:
        names = ("block", "token", "multi_round", "greedy_multipath")
        judged = [certify(name, pair, num_drafts) for name in names]
        assert len({(c.optimum, c.best.lower, c.best.upper) for c in judged}) == 1
        assert all(c.best.upper <= pair.draft_length + 1 for c in judged)
