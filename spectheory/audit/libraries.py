"""The samplers of installed libraries, by name; each is imported on first use, unmodified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial, update_wrapper
from typing import NamedTuple

from spectheory.audit.drafting import Drafted, gemma4_assistant
from spectheory.audit.relaxations import Mixture
from spectheory.audit.shipped import Provenance, Shipped
from spectheory.extras import installed
from spectheory.validate import unknown_name

ENSEMBLE_WEIGHT = Fraction(1, 2)


class Subject(NamedTuple):
    """A sampler of a library.

    Attributes:
        what: in one line.
        load: makes it a verifier.
        known: sha256 of the files that this adapter was tested with -> their version.
    """

    what: str
    load: Callable[[str], Shipped]
    known: Mapping[str, str]


def _transformers(name: str) -> Shipped:
    with installed():
        from transformers.generation.utils import _speculative_sampling

    return Shipped(_speculative_sampling, "speculative_sampling", name)


def _transformers_ensemble(name: str) -> Shipped:
    with installed():
        from transformers.generation.utils import _speculative_sampling

    weighted = partial(_speculative_sampling, assistant_ensemble_weight=float(ENSEMBLE_WEIGHT))
    function = update_wrapper(weighted, _speculative_sampling)
    return Shipped(function, "speculative_sampling", name, relaxation=Mixture(ENSEMBLE_WEIGHT))


def _transformers_gemma4(name: str) -> Shipped:
    sampler = Drafted(_transformers(name), gemma4_assistant)
    from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator

    generator = Provenance.of(SinglePositionMultiTokenCandidateGenerator)
    sampler.note = f"drafted by {generator.file}, sha256 {generator.sha256}"
    return sampler


_TRANSFORMERS_FILES = {"01f7d1d68c9fd501ae12d516df408f3c098215ef53d8d8cbbe8104cab79e94b7": "5.23.0"}

SUBJECTS: Mapping[str, Subject] = {
    "transformers": Subject("token verification of assisted generation", _transformers, _TRANSFORMERS_FILES),
    "transformers-ensemble": Subject(
        f"the same with assistant_ensemble_weight = {ENSEMBLE_WEIGHT}, lossy by design",
        _transformers_ensemble,
        _TRANSFORMERS_FILES,
    ),
    "transformers-gemma4": Subject(
        "the same with the candidate generator for Gemma 4 assistants and do_sample=True",
        _transformers_gemma4,
        _TRANSFORMERS_FILES,
    ),
}
"""Name -> sampler."""


def load_subject(name: str) -> Shipped:
    """The sampler of that name.

    Raises:
        UnknownNameError: there is none.
        MissingDependencyError: its library is not installed.
    """
    if name not in SUBJECTS:
        raise unknown_name("sampler", name, SUBJECTS, ", or your own as package.module:function")
    subject = SUBJECTS[name]
    sampler = subject.load(name)
    if sampler.provenance.sha256 not in subject.known:
        tested = ", ".join(subject.known.values())
        sampler.note += (
            "; " * bool(sampler.note) + f"this file is not one that the adapter was tested with ({tested})"
        )
    return sampler
