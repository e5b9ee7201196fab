"""A statement about a verifier on every pair: its conditions on regions, and its test at a pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from spectheory.exact.law import output_law
from spectheory.exact.proof.draft_tuples import Drafts
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.laws import Laws
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Leaf, Runs, Vector
from spectheory.exact.proof.walk import Walk
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.verifier import Verifier

MOST_SPOTS = 50
"""Regions on which the verifier is asked at a rational pair, all tuples in one batch."""


class WrongPairError(Exception):
    """A statement does not hold at a rational pair of a region."""

    def __init__(self, wrong: str, pair: ModelPair) -> None:
        super().__init__(wrong)
        self.wrong, self.pair = wrong, pair


Asked = tuple[Verifier, DraftProcess]
"""A verifier as it is given, and the process of its drafts."""


class Subject(NamedTuple):
    """A verifier, as it is given and as it is bound, with the process of its drafts."""

    verifier: Verifier
    process: DraftProcess
    bound: Verifier


class Statement(ABC):
    """A statement about a verifier.

    Attributes:
        claim, wrong: the statement in words, and what is said where it fails.
        says_lossless: whether it says that the verifier is lossless.
        name: of the statement, with what the verifier is compared with.
        subjects: the verifier with its drafts, and what it is compared with, if anything.
    """

    claim: ClassVar[str]
    wrong: ClassVar[str]
    says_lossless: ClassVar[bool] = False

    def __init__(self, name: str, subjects: Sequence[Subject]) -> None:
        self.name, self.subjects = name, subjects

    @classmethod
    def compared(cls, other: str, main: Asked, draft_length: int) -> list[Asked]:
        """What the verifier is compared with.

        Raises:
            InvalidInputError: the statement does not speak of these drafts.
        """
        return []

    @abstractmethod
    def wrong_at(self, pair: ModelPair) -> str:
        """What is wrong on a pair with rational rows; empty if nothing is.

        Raises:
            InvalidOutcomeError: the verifier fails there, or returns no law.
        """

    @abstractmethod
    def walk(self, walk: Walk, runs: list[Runs]) -> None:
        """Decide the conditions on all regions."""

    def decide(self, walk: Walk, drafts: Drafts) -> None:
        """Decide the statement on all pairs.

        Raises:
            WrongError: a condition fails on a region.
            WrongPairError: the verifier does something else on rationals.
        """
        main, *others = self.subjects
        every = [drafts]
        for one in others:
            same = one.process == main.process
            every.append(drafts if same else Drafts(walk.domain.shape, one.process))
        walk.runs = runs = [
            Runs(subject.bound, some, walk.domain, walk.graph)
            for subject, some in zip(self.subjects, every, strict=True)
        ]
        laws = {one: Laws(walk, one, self.says_lossless) for one in runs}
        spots = iter(range(MOST_SPOTS))

        def check_spot(region: Region) -> None:
            if next(spots, None) is not None:
                point = walk.oracle.point(region)
                pair = None if point is None else walk.domain.pair_at(point)
                wrong = "" if pair is None else self.wrong_at(pair)
                if pair is not None and wrong:
                    raise WrongPairError(wrong, pair)

        walk.on_leaf = lambda one, leaf, region: laws[one].check_on(leaf, region)
        walk.on_region = check_spot
        self.walk(walk, runs)
        for law in laws.values():
            law.check_all()


class Law(Statement):
    """The stops and the tokens after them are a law, as every verifier's must be."""

    claim = "the stops and the tokens after them are a law"
    wrong = ""

    def wrong_at(self, pair: ModelPair) -> str:
        output_law(self.subjects[0].verifier, pair, self.subjects[0].process)
        return ""

    def walk(self, walk: Walk, runs: list[Runs]) -> None:
        """Nothing else is asked for."""


def outputs(graph: Graph, number: int = 0) -> Vector:
    """R(a, y) of a tuple, the probability that a is accepted and y follows, under the key (number, a, y)."""

    def vector(leaf: Leaf) -> dict[Any, Node]:
        return {
            (number, path[:depth], token): mass
            for path in leaf.paths
            for depth in range(len(path) + 1)
            for token, mass in enumerate(leaf.output(graph, path[:depth]))
        }

    return vector
