"""Another model, prompt, verifier or setting is another run, whatever it is called."""

import copy
import importlib
import json
import random
import re
import shutil
import sys
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from models_support import save_model, save_pair, save_tokenizer
from montecarlo_support import PROMPTS, run
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, UnloadedPair
from spectheory.simulation import simulate
from spectheory.simulation.identity import (
    _imported,
    _Sources,
    identity_before_loading,
    identity_of_weights,
    verifier_identity,
)
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import as_verifier

OWN = """
from spectheory.verification.algorithms.one_path.token import Token

class Mine(Token):
    name = "mine"
    def __init__(self, strength=1.0):
        self.strength = strength
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return save_pair(tmp_path / "pair", "llama")


def load(folders: tuple[Path, Path], **arguments: Any) -> LanguageModelPair:
    return LanguageModelPair.load(*folders, device="cpu", **arguments)


def retrained(folder: Path) -> None:
    """Other weights under the same name, configuration and shapes."""
    save_model(folder, "llama", seed=9, layers=2)


def one_layer_more(folder: Path) -> None:
    save_model(folder, "llama", seed=1, layers=3)


@pytest.mark.parametrize(
    ("change", "words"), [(retrained, "target_weights sha256"), (one_layer_more, "target config")]
)
def test_another_model_in_the_same_folder(
    folders: tuple[Path, Path], tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    state = tmp_path / "state.jsonl"
    first = run(load(folders), state)
    change(folders[0])
    with pytest.raises(InvalidInputError, match=f"belongs to another run, different in .*{words}"):
        run(load(folders), state)
    assert run(load(folders)) != first  # the old estimates would have been wrong


def test_a_copy_of_the_folder_is_told_by_its_name(folders: tuple[Path, Path], tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    run(load(folders), state)
    copied = tmp_path / "copy"
    shutil.copytree(folders[1], copied)
    with pytest.raises(InvalidInputError, match="different in draft name"):
        run(load((folders[0], copied)), state)
    run(load(folders), state)  # the partner


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 5}, r"seed \(4 there, 5 here\)"),
        ({"samples": 4}, "samples_per_prompt"),
        ({"drafts": 3}, "num_drafts"),
        ({"draft_length": 2}, "draft_length"),
        ({"batch_size": 2}, "batch_size"),
        ({"confidence": 0.5}, "confidence"),
        ({"tolerance": 1e-6}, "tolerance"),
        ({"options": SamplingOptions(top_k=7)}, "top_k"),
        ({"options": SamplingOptions(temperature=0.5)}, "temperature"),
        ({"restriction": Restriction.fixed([1, 2, 3])}, "restriction"),
        ({"max_prompt_tokens": 1}, "max_prompt_tokens"),
        ({"threads": 2}, r"threads \(1 there, 2 here\)"),
    ],
)
def test_other_settings(
    models: LanguageModelPair, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    state = tmp_path / "state.jsonl"
    run(models, state)
    with pytest.raises(InvalidInputError, match=f"belongs to another run, different in .*{words}"):
        run(models, state, **changes)


def test_other_number_types(folders: tuple[Path, Path], tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    run(load(folders), state)
    with pytest.raises(InvalidInputError, match="probabilities"):
        run(load(folders, probs_dtype=torch.float32), state)
    with pytest.raises(InvalidInputError, match="target_weights dtype"):
        run(load(folders, dtype="float64"), state)


def test_other_prompts_of_equal_count(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    simulate(models, PROMPTS, ["token"], **arguments)
    with pytest.raises(InvalidInputError, match="different in prompt_tokens"):
        simulate(models, [*PROMPTS[:2], "for index in rango"], ["token"], **arguments)
    as_ids = [models.encode(prompt) for prompt in PROMPTS]
    simulate(models, as_ids, ["token"], **arguments)  # the same texts in another form are the same run


def test_other_verifiers(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    simulate(models, PROMPTS, ["token", "block"], **arguments)
    for names in (["token", "spectr"], ["block", "token"], ["token"]):
        with pytest.raises(InvalidInputError, match=r"different in .*verifiers"):
            simulate(models, PROMPTS, names, **arguments)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A user's module, written anew and imported under the same name."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def imported(code: str) -> Any:
        (tmp_path / "users_module.py").write_text(code)
        monkeypatch.delitem(sys.modules, "users_module", raising=False)
        return find_verifier("users_module:Mine")

    return imported


def test_an_edited_verifier_is_another_one(
    models: LanguageModelPair, tmp_path: Path, own: Callable[[str], Any]
) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    before = verifier_identity(own(OWN))
    simulate(models, PROMPTS, [own(OWN).user_object], **arguments)
    simulate(models, PROMPTS, [own(OWN).user_object], **arguments)  # the partner: not edited
    edited = own(OWN + "\n# edited\n")
    assert {**verifier_identity(edited), "sha256": None} == {**before, "sha256": None}
    with pytest.raises(InvalidInputError, match="different in verifier mine sha256;"):
        simulate(models, PROMPTS, [edited.user_object], **arguments)


@pytest.mark.parametrize(
    "imported",
    [
        "import {helper}",
        "from {helper} import half",
        "from {helper} import RATE",
        "def later():\n    import {helper}",
    ],
)
def test_what_a_verifier_imports_from_its_own_folder_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imported: str
) -> None:
    """An edited helper makes another verifier; a neighbour that is not imported does not."""
    monkeypatch.syspath_prepend(tmp_path)
    names = [f"{name}_{len(imported)}" for name in ("with_helper", "helper", "deeper", "neighbour")]
    main, helper, deeper, neighbour = names
    for name in names:
        (tmp_path / f"{name}.py").write_text("half = 1 / 2\n")
    (tmp_path / f"{helper}.py").write_text(f"import {deeper}\nRATE = 1\ndef half(): return {deeper}.half\n")
    (tmp_path / f"{main}.py").write_text(imported.format(helper=helper) + "\nimport numpy\n" + OWN)

    def identity() -> dict[str, Any]:
        for name in names:
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return verifier_identity(as_verifier(importlib.import_module(main).Mine()))

    before = identity()
    (tmp_path / f"{neighbour}.py").write_text("half = 0.5\n")
    assert identity() == before
    for name in (helper, deeper):
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write(f"# {name} edited, so that its size is another one\n")
        edited = identity()
        assert edited != before
        before = edited


@pytest.mark.parametrize(
    ("text", "file", "names"),
    [
        ("from . import c", "b.py", ["p.q", "p.q.c"]),
        ("from .. import c", "b.py", ["p", "p.c"]),
        ("from ..r import c", "b.py", ["p.r", "p.r.c"]),
        ("from .r import c", "__init__.py", ["p.q.b.r", "p.q.b.r.c"]),
        ("from r import c", "b.py", ["r", "r.c"]),
    ],
)
def test_relative_imports(tmp_path: Path, text: str, file: str, names: list[str]) -> None:
    (tmp_path / file).write_text(text)
    assert list(_imported(tmp_path / file, "p.q.b")) == names


def test_versions_count(models: LanguageModelPair) -> None:
    versions = identity_before_loading(models, [], [])["versions"]
    assert versions == {name: str(sys.modules[name].__version__) for name in versions}
    assert versions.keys() == {"spectheory", "torch", "transformers", "numpy"}


def made(positional: Any = 0, keyword: Any = 0, held: Any = 0) -> Callable[..., Any]:
    def function(x: Any = positional, *, y: Any = keyword) -> Any:
        return held

    return function


DIFFERENT = {
    "default": (made(), made(positional=1)),
    "default of a keyword": (made(), made(keyword=1)),
    "enclosed": (made(), made(held=1)),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "dtype": (np.zeros(2), np.zeros(2, dtype=np.int64)),
    "dtype of a tensor": (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
    "entry of a tensor": (torch.zeros(2), torch.ones(2)),
    "self": (MethodType(made(), 1), MethodType(made(), 2)),
    "method": (MethodType(made(), 1), MethodType(made(held=1), 1)),
    "argument": (partial(made(), 1), partial(made(), 2)),
    "keyword": (partial(made(), y=1), partial(made(), y=2)),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_parameters_that_differ_in_one_thing(one: Any, other: Any) -> None:
    """The partner: what is made alike again is the same."""
    described, again = (_Sources().describe(value) for value in (one, copy.deepcopy(one)))
    assert described == again != _Sources().describe(other)
    assert json.dumps(described) != json.dumps(_Sources().describe(other))


def test_parameters_of_a_verifier_count(own: Callable[[str], Any]) -> None:
    kind = type(own(OWN).user_object)
    identities = [verifier_identity(as_verifier(kind(strength))) for strength in (1.0, 0.5, 1.0)]
    assert identities[0] == identities[2] != identities[1]
    for value in ([1, {"a": torch.ones(2)}], {3, 4}, len, json, kind, lambda: 0):
        assert verifier_identity(as_verifier(kind(value)))["sha256"] is not None
        assert verifier_identity(as_verifier(kind(value))) == verifier_identity(as_verifier(kind(value)))
    itself = kind()
    itself.strength = itself
    assert verifier_identity(as_verifier(itself))["sha256"] is not None


def test_a_verifier_without_a_source(models: LanguageModelPair, tmp_path: Path) -> None:
    """Typed into an interpreter: it runs, but no checkpoint could tell its next version apart."""
    space: dict[str, Any] = {"__name__": "typed_in", "Token": Token}
    exec("class Typed(Token):\n    name = 'typed'\n", space)
    typed = space["Typed"]()
    simulate(models, PROMPTS, [typed], samples=2, draft_length=1)
    with pytest.raises(InvalidInputError, match="'typed' has no source file"):
        simulate(models, PROMPTS, [typed], samples=2, draft_length=1, checkpoint=tmp_path / "state.jsonl")


def test_another_run_is_refused_before_weights_are_loaded(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.jsonl"
    run(load(folders), state)
    monkeypatch.setattr(UnloadedPair, "loaded", lambda self: pytest.fail("weights are loaded"))
    unloaded = UnloadedPair.find(*folders, device="cpu")
    with pytest.raises(InvalidInputError, match="seed"):
        run(unloaded, state, seed=5)
    with pytest.raises(pytest.fail.Exception, match="weights are loaded"):  # the partner
        run(unloaded, state)


def test_another_tokenizer(folders: tuple[Path, Path], tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    arguments: dict[str, Any] = {"samples": 2, "draft_length": 1, "checkpoint": state}
    prompts = [[1, 2], [3]]
    simulate(load(folders), prompts, ["token"], **arguments)
    for folder in folders:
        save_tokenizer(folder, texts=["zzzz yyyy zzzz"], vocab_size=270)
    with pytest.raises(InvalidInputError, match="tokenizer"):
        simulate(load(folders), prompts, ["token"], **arguments)


MADE_BY_A_FUNCTION = """
def make(number):
    class Fixed:
        name = "fixed"
        limit = number // 10
        def outcome(self, paths, target_rows, draft_rows):
            return number % 10
    return Fixed()

class Slots:
    __slots__ = ("__hidden",)
    name = "slots"
    def __init__(self, number):
        self.__hidden = number
    def outcome(self, paths, target_rows, draft_rows):
        return self.__hidden
"""


@pytest.mark.parametrize("made_by", ["make", "Slots"])
def test_what_a_class_closes_over_and_keeps_in_slots_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_by: str
) -> None:
    """A closure of a method, an attribute of a class that a function made, a slot."""
    (tmp_path / "made_by_a_function.py").write_text(MADE_BY_A_FUNCTION, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_by_a_function", raising=False)
    make = getattr(importlib.import_module("made_by_a_function"), made_by)
    found = [verifier_identity(as_verifier(make(number)))["sha256"] for number in (1, 1, 2, 11)]
    assert None not in found
    assert found[0] == found[1]
    assert len({*found}) == 3


def test_the_end_of_sequence_counts(folders: tuple[Path, Path]) -> None:
    """It lies in a file of its own beside the configuration."""
    before = identity_of_weights(load(folders))
    assert before == identity_of_weights(load(folders))
    (folders[0] / "generation_config.json").write_text('{"eos_token_id": [3, 5]}', encoding="utf-8")
    after = identity_of_weights(load(folders))
    assert after["end_of_sequence"] == [3, 5] != before["end_of_sequence"]
    assert after | {"end_of_sequence": None} == before | {"end_of_sequence": None}


OF_MODULES = """
from functools import lru_cache
KIND = {kind!r}
LISTED = [{{"kind": KIND}}]

class Held:
    pass

HELD = Held()
HELD.kind = KIND

def closing(kind):
    return lambda: kind

chosen = closing(KIND)

@lru_cache
def cached():
    return KIND

class Meta(type):
    kind = KIND

class WithMeta(metaclass=Meta):
    pass

class Named:
    name = "named"

    @property
    def kind(self):
        return KIND

    def outcome(self, paths, target_rows, draft_rows):
        return ({expression})
"""


@pytest.mark.parametrize(
    "expression",
    ["KIND", "LISTED[0]['kind']", "HELD.kind", "chosen()", "cached()", "type(WithMeta).kind", "self.kind"],
)
def test_values_of_the_module_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expression: str) -> None:
    """They may come from the environment when the module is imported, with the same source."""
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for kind in ("token", "spectr", "token"):  # of two lengths: Python compares time and size of a source
        (tmp_path / "of_modules.py").write_text(OF_MODULES.format(kind=kind, expression=expression))
        monkeypatch.delitem(sys.modules, "of_modules", raising=False)
        importlib.invalidate_caches()
        module = importlib.import_module("of_modules")
        (tmp_path / "of_modules.py").write_text("# the same file for all of them")
        found.append(verifier_identity(find_verifier(module.Named()))["sha256"])
    assert found[0] == found[2] != found[1]


class _Settings(dict[str, int]):
    pass


class _Words(str):
    __slots__ = ("number",)


class _Array(np.ndarray):
    pass


def _with(thing: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(thing, name, value)
    return thing


def _cell(value: int) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]


def _torch_generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


KEPT: dict[str, Callable[[int], Any]] = {
    "attribute of a dict": lambda n: _with(_Settings(), number=n),
    "attribute of a text": lambda n: _with(_Words("word"), number=n),
    "attribute of an array": lambda n: _with(np.zeros(2).view(_Array), number=n),
    "kind of a key": lambda n: {n: 1} if n else {"0": 1},
    "order of a dict": lambda n: dict(sorted({"a": 1, "b": 2}.items(), reverse=bool(n))),
    "default of a dict": lambda n: defaultdict(partial(int, n)),
    "numbers of Python": random.Random,
    "numbers of numpy": np.random.default_rng,
    "numbers of torch": _torch_generator,
    "long pattern": lambda n: re.compile("a" * 300 + str(n)),
    "method of a list": lambda n: [n, 1].index,
    "cell": _cell,
    "module made by code": lambda n: _with(ModuleType("settings"), number=n),
    "queue": lambda n: deque([1], maxlen=n + 1),
    "type of numpy": lambda n: (np.float32, np.float64)[n],
    "type of torch": lambda n: (torch.Tensor, torch.nn.Parameter)[n],
    "named tuple": namedtuple("named", "number"),  # type: ignore[dict-item]
    "enumeration": lambda n: (Sense.MIN, Sense.MAX)[n],
}


class Sense(Enum):
    MIN, MAX = 0, 1


@pytest.mark.parametrize("name", KEPT)
def test_whatever_a_parameter_keeps_counts(name: str) -> None:
    """The partner is the same parameter, made again."""
    identities = [
        verifier_identity(as_verifier(_with(Token(), parameter=KEPT[name](n))))["sha256"] for n in (0, 1, 0)
    ]
    assert None not in identities
    assert identities[0] == identities[2] != identities[1]


def test_where_a_generator_stands_is_not_known() -> None:
    found = verifier_identity(as_verifier(_with(Token(), parameter=(n for n in range(2)))))
    assert found["sha256"] is None
