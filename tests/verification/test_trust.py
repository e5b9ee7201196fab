"""A verifier is the package's own by its contents, not by its name; what ``bind`` returns is judged too."""

import random
import sys
from collections.abc import Callable
from functools import partial
from types import MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hostile_verifiers import (
    PAIR,
    RIGHT,
    WRONG,
    Made,
    check_hostile,
    copied_draft,
    in_floats,
    misplaced,
    verdicts,
)
from spectheory import Outcome, black_box, certify, per_sample, verifiers
from spectheory.exact.law import output_law
from spectheory.foundation.private_copies import PrivateCopy
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.algorithms.path_selection.greedy_multipath import GreedyMultipath
from spectheory.verification.algorithms.path_selection.score_couplings import tilted_cuts
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.algorithms.position_by_position.multi_round import MultiRound
from spectheory.verification.compilation import compiled
from spectheory.verification.defective import defects
from spectheory.verification.resolve import find_verifier
from spectheory.verification.trust import is_packages_own
from spectheory.verification.verifier import UserVerifier, Verifier, as_verifier
from user_samplers import token_sampler
from user_verifiers import UserToken

# --------------------------------------------------------------------------------- trust and bind


def with_attributes(verifier: Any, /, **attributes: Any) -> Any:
    vars(verifier).update(attributes)
    return verifier


def named_as(kind: type, **attributes: Any) -> Any:
    """A class that says that it is one of the package."""
    said = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind.__name__, (kind,), said | attributes)()


def in_a_false_module() -> Any:
    module = ModuleType("spectheory.false")
    sys.modules[module.__name__] = module
    module.Last = type(
        "Last", (MultiRound,), {"__module__": module.__name__, "single_path": True, "name": "l"}
    )
    return module.Last()


class Lies:
    """Says that it is of another class."""

    name = "lies"
    outcome = staticmethod(WRONG)
    __class__ = Token  # type: ignore[assignment]


class Answers:
    """Has every attribute that is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name == "outcome":
            return WRONG
        raise AttributeError(name)


class Hiding(dict[str, Any]):
    """Attributes that nobody finds by looking for them."""

    def items(self) -> Any:
        return ()

    def __iter__(self) -> Any:
        return iter(())


class AnyName(str):
    """Equal to every other name."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Shifting(Outcome):
    """An outcome whose parts are others at every look."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name not in ("stop_probs", "correction"):
            return super().__getattribute__(name)
        Shifting.looks += 1
        parts = super().__getattribute__("weights")
        return getattr(parts[0] if Shifting.looks < 3 else parts[1], name)


def one_of_two(node: Any, levels: Any) -> Any:
    """A coupling that draws which cells it fills."""
    plan = tilted_cuts(node, levels)
    return plan if random.random() < 0.5 else plan[..., ::-1].copy()


def with_dictionary(verifier: Any, names: Any) -> Any:
    verifier.__dict__ = names
    return verifier


def binding(good: Any, bad: Any) -> Made:
    """``bind`` gives ``good`` where it sees a pair, else ``bad``."""
    return Made(WRONG, bind=lambda process, pair=None: bad if pair is None else good)


class BindsByWhatItSaw(Made):
    """Wrong in a process that binds for language models alone, as ``simulate`` does."""

    seen = False

    def bind(self, process: Any, pair: Any = None) -> Any:
        self.seen |= pair is not None
        return verifiers["block"] if self.seen else Made()


class BindsItself:
    """Sets itself right where it sees a pair."""

    name = "binds_itself"

    def bind(self, process: Any, pair: Any = None) -> Any:
        self.law = WRONG if pair is None else RIGHT
        return self

    def outcome(self, *given: Any) -> Outcome:
        return self.law(*given)


class Copied(MultiRound):
    """Its copy, which the package's ``bind`` makes, is something else."""

    name = "copied"

    def __copy__(self) -> Any:
        return Made()


def changing(what: Callable[[Any, Any], Any], law: Any = WRONG) -> Made:
    """``bind`` changes the process or the pair that it is given."""
    made = Made(law)
    made.bind = lambda process, pair=None: (what(process, pair), made)[1]
    return made


SEVERAL = defects["likeliest_draft"]
ON_MODELS = "but not as bind"
WITHIN: dict[str, Any] = dict.fromkeys(("verifier", "traced"), Token())
TRUST: dict[str, tuple[Any, str]] = {
    "outcome over a package's": (with_attributes(Token(), outcome=WRONG), ""),
    "outcome of a copy that bind makes": (with_attributes(MultiRound(), outcome=misplaced), ""),
    "a package's method over another's": (with_attributes(Token(), outcome=SEVERAL.outcome), ""),
    "a flag alone": (with_attributes(type(SEVERAL)(), single_path=True), ""),
    "a flag of a verifier within": (with_attributes(type(SEVERAL)(), single_path=True, **WITHIN), ""),
    "a flag over a package's": (with_attributes(MultiRound(), single_path=True, outcome=misplaced), ""),
    "hidden attributes": (with_dictionary(MultiRound(), Hiding(single_path=True, outcome=misplaced)), ""),
    "a flag under any name": (with_dictionary(type(SEVERAL)(), {AnyName("single_path"): True}), ""),
    "a partial": (with_attributes(Block(), outcome=partial(WRONG)), ""),
    "a user's coupling": (ScoredMultipath(coupling=one_of_two), ""),
    "a name of the package": (named_as(Token, outcome=staticmethod(WRONG)), ""),
    "a flag under such a name": (named_as(MultiRound, single_path=True, outcome=staticmethod(misplaced)), ""),
    "a false module": (with_attributes(in_a_false_module(), outcome=misplaced), ""),
    "a false class": (Lies(), ""),
    "any attribute": (Answers(), ""),
    "a namespace": (SimpleNamespace(outcome=WRONG, name="n"), ""),
    "an altered wrapper": (with_attributes(as_verifier(UserToken()), user_object=Made()), ""),
    "a wrapper with an outcome": (with_attributes(as_verifier(Made()), outcome=RIGHT, single_path=True), ""),
    "a wrapper that bound": (as_verifier(binding(verifiers["block"], Made())), ON_MODELS),
    "a compiled one": (compiled(Made(), backend="eager"), ""),
    "an outcome that changes": (
        Made(lambda *given: Shifting(None, None, (WRONG(*given), RIGHT(*given)))),
        "",
    ),  # type: ignore[arg-type]
    "bind to a published one": (binding(verifiers["block"], Made()), ON_MODELS),
    "bind to another of its name": (binding(Made(RIGHT), Made(WRONG)), ON_MODELS),
    "bind of itself": (BindsItself(), ON_MODELS),
    "bind by what it has seen": (BindsByWhatItSaw(), ON_MODELS),
    "bind to what is not a law": (
        binding(
            Made(RIGHT), Made(lambda *given: Outcome(given[1][..., 0] * 0 + 1, RIGHT(*given).correction))
        ),
        "not a law",
    ),
    "compiled after bind": (compiled(binding(verifiers["block"], Made()), backend="eager"), ON_MODELS),
    "a copy that is another": (Copied(), ""),
    "fewer drafts": (
        changing(lambda process, pair: object.__setattr__(process, "num_drafts", 1), misplaced),
        "",
    ),
    "another target": (changing(lambda process, pair: pair and copied_draft(pair)), ""),
    "numbers of the target": (
        changing(lambda process, pair: pair and pair.target[0][0, 0].__setattr__("_numerator", 1)),
        "",
    ),
}


@pytest.mark.parametrize(("verifier", "says"), TRUST.values(), ids=TRUST)
def test_no_borrowed_trust_is_lossless(verifier: Any, says: str) -> None:
    check_hostile(verifier, says)


def test_a_registered_verifier_that_was_changed_is_judged_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the object, on its class, or on a class above it; by name as by object."""
    for holder, name, value in (
        (verifiers["block"], "outcome", WRONG),
        (Block, "outcome", lambda self, *given: WRONG(*given)),
        (Block, "bind", lambda self, *given: Made()),
        (Block.__mro__[1], "exact", False),
        (Verifier, "bind", lambda self, *given: Made()),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(holder, name, value, raising=False)
            assert isinstance(find_verifier("block"), UserVerifier)
            assert isinstance(as_verifier(verifiers["block"]), UserVerifier)
            assert name == "exact" or not all(verdicts("block"))
    assert not isinstance(find_verifier("block"), UserVerifier)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"a": 1, "b": Block()}, {"a": 1, "b": UserToken()}),
        ({"a": 1}, {UserToken: 1, "a": 1}),
        ([1, Block()], [1, UserToken()]),
        (Block().outcome, MethodType(Block.outcome, UserToken())),
        (Block().outcome, MethodType(lambda self: None, Block())),
    ],
)
def test_trust_goes_into_all_parts(good: Any, bad: Any) -> None:
    assert is_packages_own(good)
    assert not is_packages_own(bad)


# ---------------------------------------------------------------------------------- partners


class Cached(UserToken):
    """Keeps its answers by the contents of the arrays, and returns the same arrays again."""

    def __init__(self) -> None:
        self.kept: dict[str, Outcome] = {}

    def outcome(self, *given: Any) -> Outcome:
        key = str([array.tolist() for array in given])
        return self.kept.setdefault(key, super().outcome(*given))


class NeedsThePair(UserToken):
    """Cannot be bound without a pair."""

    def bind(self, process: Any, pair: Any = None) -> Any:
        self.size = pair.vocab_size
        return self


class CountsPaths(UserToken):
    """Remembers the number of drafts that ``bind`` names."""

    def bind(self, process: Any, pair: Any = None) -> Any:
        bound = CountsPaths()
        bound.num_drafts = process.num_drafts
        return bound


HONEST: dict[str, Any] = {
    "views of what it is given": Made(
        lambda p, t, d: Outcome.from_rows(
            np.where(np.indices(t.shape[1:-1]).sum(0) == 0, 0 * t[..., 0] + 1, 0 * t[..., 0]), t
        )
    ),
    "a subclass": type("Mine", (Block,), {"name": "mine"})(),
    "a subclass of several paths": type("Mine", (MultiRound,), {"name": "mine"})(),
    "a published one within": Made(RIGHT),
    "cached": Cached(),
    "bound": CountsPaths(),
    "bound to the pair": NeedsThePair(),
    "bound to published ones": binding(verifiers["greedy_multipath"], verifiers["block"]),
    "in floats": Made(RIGHT, exact=False),
    "float rows of integers": Made(lambda *given: RIGHT(*given), exact=False),
    "a user's coupling": ScoredMultipath(coupling=lambda node, levels: tilted_cuts(node, levels)),
    "a ranking": GreedyMultipath(),
    "compiled": compiled(Made(RIGHT), backend="eager"),
    "a loop": per_sample(
        lambda *given: (
            RIGHT(*(a[None] for a in given)).stop_probs[0],
            np.stack(
                [
                    [
                        RIGHT(*(a[None] for a in given)).correction(np.array([k]), np.array([i]))[0]
                        for i in range(3)
                    ]
                    for k in range(len(given[0]))
                ]
            ),
        )
    ),
    "a sampler": black_box(token_sampler),
    "a sampler in floats": black_box(in_floats, exact=False),
    "a partial": Made(partial(RIGHT)),
    "a sampler with half a coin": black_box(
        lambda p, t, d, g: [g.random() < 0.5 and 0, token_sampler(p, t, d, g)][1]
    ),
    **{
        name: verifiers[name] for name in verifiers if name not in ("kseq", "multi_round_without_replacement")
    },
}


@pytest.mark.parametrize("verifier", HONEST.values(), ids=HONEST)
def test_partner_no_honest_one_is_refused(verifier: Any) -> None:
    if getattr(verifier, "lossless", True):
        assert all(verdicts(verifier))
        assert all(verdicts(verifier, PAIR.to_float()))


def test_what_bind_returns_is_named() -> None:
    law = output_law(binding(verifiers["greedy_multipath"], verifiers["block"]), PAIR, 2)
    assert law.verifier.name == "made (bound to greedy_multipath)"
    assert law.block_efficiency == output_law("greedy_multipath", PAIR, 2).block_efficiency


def test_published_verifiers_get_the_arrays_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost no copy; the partner is a user's."""
    monkeypatch.setattr(PrivateCopy, "lent", None)
    assert certify("block", PAIR, 2).is_valid
    with pytest.raises(TypeError):
        certify(Made(RIGHT), PAIR, 2)
