"""Verification algorithms, one published algorithm per file, and the mapping name -> verifier."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType

from spectheory.algorithms.block import Block
from spectheory.algorithms.greedy_block import GreedyBlock
from spectheory.algorithms.greedy_multipath import GreedyMultipath
from spectheory.algorithms.kseq import KSeq
from spectheory.algorithms.mixed_multipath import MixedMultipath
from spectheory.algorithms.multi_round import MultiRound
from spectheory.algorithms.multi_round_without_replacement import MultiRoundWithoutReplacement
from spectheory.algorithms.optimal_multipath import OptimalMultipath, OptimalMultipathOfPair
from spectheory.algorithms.otm import OTM
from spectheory.algorithms.spectr import SpecTr
from spectheory.algorithms.spectr_gbv import SpecTrGbv
from spectheory.algorithms.token import Token
from spectheory.errors import UnknownNameError
from spectheory.outcome import Verifier, as_verifier

verifiers: Mapping[str, Verifier] = MappingProxyType(
    {
        verifier.name: verifier
        for verifier in (
            Token(),
            Block(),
            GreedyBlock(),
            KSeq(),
            SpecTr(),
            MultiRound(),
            MultiRoundWithoutReplacement(),
            OTM(),
            GreedyMultipath(),
            MixedMultipath(),
            OptimalMultipathOfPair(),
            SpecTrGbv(),
        )
    }
)
"""Every published verifier by name, with its default parameters."""


def find_verifier(name: str) -> Verifier:
    """The verifier of that name, or the user's own named ``"package.module:attribute"``.

    The attribute is a verifier or a class of one; the current directory is searched too.

    Raises:
        UnknownNameError: there is none; the error suggests the nearest name.

    Example:
        >>> find_verifier("block")
        <verifier block>
    """
    if name in verifiers:
        return verifiers[name]
    if ":" in name:
        return _users_own(name)
    near = get_close_matches(name, verifiers, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownNameError(
        f"no verifier is called {name!r}; {hint}known: {', '.join(verifiers)}, "
        "or your own as package.module:name"
    )


def _users_own(name: str) -> Verifier:
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module_name), attribute)
    except ImportError as error:
        raise UnknownNameError(f"cannot import the verifier {name!r}: {error}") from error
    except AttributeError as error:
        raise UnknownNameError(f"module {module_name!r} has no attribute {attribute!r}") from error
    return as_verifier(found() if isinstance(found, type) else found)


__all__ = [
    "OTM",
    "Block",
    "GreedyBlock",
    "GreedyMultipath",
    "KSeq",
    "MixedMultipath",
    "MultiRound",
    "MultiRoundWithoutReplacement",
    "OptimalMultipath",
    "SpecTr",
    "SpecTrGbv",
    "Token",
    "find_verifier",
    "verifiers",
]
