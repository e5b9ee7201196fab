"""A shipped sampler as a verifier: its exact law, computed from its unmodified code."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import torch

from spectheory.auditing.following.intercept import Journal
from spectheory.auditing.subjects.asked import Numbers, Part, Question, drafts_and_rows
from spectheory.auditing.subjects.fitting import check_arguments
from spectheory.auditing.subjects.provenance import Provenance
from spectheory.auditing.subjects.relaxations import Relaxation
from spectheory.auditing.subjects.runs import SEEDS, Runs
from spectheory.auditing.subjects.sampler_verifiers import SamplerVerifier
from spectheory.auditing.subjects.signatures import (
    SIGNATURES,
    Drafts,
    Request,
    Row,
    signature_called,
    verified_batch,
    with_point_mass_drafts,
)
from spectheory.auditing.tape.decisions import (
    MAX_RUNS,
    Tape,
)
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.arrays import like_rows
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.pairs.contexts import prefix_numbers, rows_along
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.process import SAMPLED_PROCESSES
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import Processor, processed
from spectheory.verification.verifier import Verifier

T = TypeVar("T")
Tokens = tuple[int, ...]
Learns = Callable[[Callable[[int], Any], Sequence[Any]], tuple[dict[Any, Fraction], Fraction]]
"""(a function (seed) -> the tokens of all requests, the requests) -> the joint law, a bound on its error."""
SEVERAL = (1, 2, 3)
"""The numbers of drafted paths on which we judge a sampler of several paths."""


class Shipped(SamplerVerifier, Runs, Verifier):
    """A shipped sampler with its random numbers replaced.

    Args:
        function: the sampler, unmodified.
        signature: how we call it, a name in ``SIGNATURES``.
        name: the verifier's name; by default the function's.
        relaxation: the law that the sampler states, if this is not the target's.  We then judge the sampler
            on the pairs ``relaxation.stated``.
        provenance: provenance of the code, if it cannot be read from the function.
        mixes: the kinds of batches, names in ``KINDS``, for the signatures "batch" and "path_batch".  By
            default all; fewer for a library whose engine makes fewer.
        num_drafts: the numbers K of paths that a call can carry.  The default is 1, and also 2 and 3 if the
            signature has several paths.
        trees: the draft processes for which the sampler is meant, if its paths are not independent.
        box_bits: how finely we enclose products of random numbers (``Tape``).
        max_runs: the largest number of runs for one tuple of drafts.
        stand_ins: the parts around the sampler that we replaced, in words.
        seeds: the seeds other than those of a generator, in words.

    Attributes:
        note: a remark for readers of the certificate.
        is_of_a_library: whether the sampler is the named sampler of a library.
        is_of_another_file: whether its adapter was tested only with other files.
        reported: the draft rows by depth that we hand to the sampler, if they differ from the drafts' law.
        processor: the processor of the target's rows, which are handed over raw; see ``processors``.
        declared: this processor, if the user has declared it.
        raw: the target rows by depth that we hand to the sampler, if it is judged on others.
        learns: learns the law of batches from calls, if we cannot follow them.
        undecided: the largest probability, given any drafts, of runs that took the answer of a box.  It
            bounds the error of the law in total variation.

    Example:
        >>> import torch
        >>> from spectheory import certify, instances
        >>> def accept(draft_tokens, target_probs, draft_probs, coins, final_coin):
        ...     '''One drafted token, accepted if the coin is below p / q; the residual of two tokens.'''
        ...     token = int(draft_tokens[0])
        ...     if coins[0] >= target_probs[0, token] / draft_probs[0, token]:
        ...         return [1 - token]
        ...     return [token, int(final_coin >= target_probs[1, 0])]
        >>> certificate = certify(Shipped(accept, "coins"), instances.bernoulli("1/2", "1/4"))
        >>> print(certificate.verdict, certificate.block_efficiency)
        lossless 7/4
    """

    kind = "sampler"
    """What it is, for error texts."""
    prompt: Tokens = ()
    """The tokens before the judged ones, for processors."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        name: str | None = None,
        *,
        relaxation: Relaxation | None = None,
        provenance: Provenance | None = None,
        mixes: Sequence[str] | None = None,
        num_drafts: Sequence[int] = (),
        trees: Sequence[DraftProcess] = (),
        box_bits: int = Tape.box_bits,
        max_runs: int = MAX_RUNS,
        stand_ins: Sequence[str] = (),
        seeds: Sequence[str] = (),
    ) -> None:
        called = name or str(getattr(function, "__name__", "sampler"))
        super().__init__(function, called, max_runs)
        self.signature_name, self.signature = signature, signature_called(signature)
        self.provenance = provenance or Provenance.of(function)
        self.source = f"{self.provenance.package} {self.provenance.version}".strip() or self.provenance.file  # type: ignore[misc]
        self.single_path = not self.signature.several_paths  # type: ignore[misc]
        if self.signature.several_paths:
            self.draft_processes = SAMPLED_PROCESSES  # type: ignore[misc]
        self.has_given_drafts = bool(num_drafts or trees)
        self.num_drafts, self.trees = tuple(num_drafts), tuple(trees)
        if self.single_path and (trees or any(number > 1 for number in num_drafts)):
            raise InvalidInputError(
                f"samplers of the signature {signature!r} take one drafted path; several are audited with "
                f"{', '.join(name for name, known in SIGNATURES.items() if known.several_paths)}"
            )
        if not self.has_given_drafts:
            is_stated = relaxation is None or relaxation.is_about_several_paths
            takes_several = self.signature.several_paths and is_stated
            self.num_drafts = SEVERAL if takes_several else (1,)
        check_arguments(function, called, signature)
        self.relaxation, self.mixes, self.box_bits = relaxation, mixes, box_bits
        self.stand_ins, self.seeds = tuple(stand_ins), (*SEEDS, *seeds)
        self.journal = Journal()
        self.reasons = set()
        self.undecided = Fraction(0)
        self.note = ""
        self.is_of_a_library = self.is_of_another_file = False
        self.reported: tuple[np.ndarray, ...] | None = None
        self.processor: Processor | None = None
        self.declared: Processor | None = None
        self.raw: tuple[np.ndarray, ...] | None = None
        self.learns: Learns | None = None
        self._laws: dict[Any, tuple[Mapping[Tokens, Fraction], Fraction]] = {}

    @property
    def words(self) -> str:
        """Name the sampler for an error text.  If its adapter was tested with another file, name both."""
        doubt = ", or its adapter, which was tested with another file," if self.is_of_another_file else ""
        return f"{self.kind} {self.name!r}{doubt}"

    def prepared(self, pair: ModelPair) -> tuple[Shipped, ModelPair]:
        """Return the sampler, and the pair on which we judge it.

        The pair has the drafts that the signature takes.  Its target is the law that the sampler states.
        """
        pair = with_point_mass_drafts(pair) if self.signature.point_mass_drafts else pair
        if self.processor is None and self.relaxation is None:
            return self, pair
        asked = copy.copy(self)
        asked.raw = pair.target
        return asked, self.wanted(pair)

    def wanted(self, pair: ModelPair) -> ModelPair:
        """The pair with the target that the declared processor, or the relaxation, states."""
        if self.processor is not None:
            return processed(pair, self.processor, prompt=self.prompt)
        return pair if self.relaxation is None else self.relaxation.stated(pair)

    def stated_row(self, text: Sequence[int], row: torch.Tensor) -> list[Fraction]:
        """The row that a request of a batch must have after drafted tokens, from the row that we hand over.

        Where the declared processor has no rational result, we compute it in float64.
        """
        exact = np.array(list(map(Fraction, row.tolist())), dtype=object)
        if self.processor is None:
            return exact.tolist()
        before = (*self.prompt, *text)
        try:
            found = self.processor(before, exact)
        except InvalidInputError:
            found = self.processor(before, exact.astype(float))
        return list(map(Fraction, found.tolist()))

    def asked(self, question: Question) -> Iterator[Part]:
        """The calls that a question makes: one per tuple of drafts."""
        asked, pair = self.prepared(question.pair)
        for paths, target, draft, prob in drafts_and_rows(question._replace(pair=pair)):
            call = asked.on_drafts(paths, *asked.told(paths, target, draft))
            yield Part(prob, call, f"the drafts {paths.tolist()}")

    def keep(self, question: Question, laws: Sequence[Mapping[Any, Fraction]], within: Fraction) -> None:
        """Store the laws of a question's calls, as if we had followed them; ``within`` is their error."""
        asked, pair = self.prepared(question.pair)
        for drafted, law in zip(drafts_and_rows(question._replace(pair=pair)), laws, strict=True):
            paths, *rows, _ = drafted
            self._laws[_key(paths, *asked.told(paths, *rows))] = law, Fraction(0)

    def judged_on(self, pair: ModelPair) -> ModelPair:
        """The pair whose target the tokens must follow."""
        return self.prepared(pair)[1]

    def tokens_of(self, label: Any) -> Tokens:
        """The tokens in the label of a call of ``asked``; () without a valid output."""
        return label

    def on_drafts(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> Callable[[Numbers], Tokens]:
        """A call on one tuple of drafts: (numbers) -> the tokens, after checking that they are valid."""
        drafts = Drafts(paths, target_rows.astype(float), draft_rows.astype(float))

        def call(numbers: Numbers) -> Tokens:
            (tokens,) = self.calls(drafts, numbers)
            return self.valid_tokens(tokens, paths, target_rows.shape[-1])

        return call

    def on_batch(self, rows: Sequence[Any], times: int = 1) -> Callable[[Numbers], tuple[Tokens, ...]]:
        """A call on a batch: (numbers) -> the tokens of every ``Row`` or ``Request``; () if not valid.

        The sampler is called ``times`` times, and the tokens are those of the last call.
        """
        size = rows[0][1].shape[-1]

        def call(numbers: Numbers) -> tuple[Tokens, ...]:
            found = self.in_a_row(numbers, times, lambda call: verified_batch(self.sampler, call, rows))[-1]
            return tuple(
                self.valid(lambda _: self.valid_tokens(tokens, row[0], size), numbers, ())  # noqa: B023
                for row, tokens in zip(rows, found, strict=True)
            )

        return call

    def valid_tokens(self, returned: Any, paths: Any, size: int) -> Tokens:
        """Check that tokens are a drafted prefix and one more token of the vocabulary, and return them."""
        tokens = _known(self.tokens(returned), size)
        self.credited_path(np.atleast_2d(paths), tokens, size)
        return tokens

    def forget(self) -> None:
        self._laws.clear()

    def calls(self, drafts: Drafts, numbers: Numbers, times: int = 1) -> tuple[Tokens, ...]:
        """Return the tokens of consecutive calls."""
        found = self.in_a_row(numbers, times, lambda call: self.signature.call(self.sampler, call, drafts))
        return tuple(map(self.tokens, found))

    def _law(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> tuple[Any, Any]:
        """As for a user's sampler.  A run without output is a stop whose correction row has no mass."""
        masses = dict(self.law_given(paths, target_rows, draft_rows))
        undefined = masses.pop((), 0)
        stops, rows = self._stops_and_rows(masses, paths, fractions_if_exact(target_rows))
        if undefined:
            free = np.argwhere(stops == 0)
            if not len(free):
                why = min(self.journal.undefined, default="it returns no tokens")
                raise InvalidOutcomeError(f"sampler {self.name!r} makes no valid output: {why}")
            stops[tuple(free[0])] += undefined
        return like_rows(stops, target_rows), like_rows(rows, target_rows)

    def law_given(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> Mapping[Tokens, Fraction]:
        """The probability of every output given drafts, computed once.  () stands for no valid output."""
        target, draft = self.told(paths, target_rows, draft_rows)
        asked = _key(paths, target, draft)
        if asked not in self._laws:
            self._laws[asked] = self.follow(self.on_drafts(paths, target, draft), ())
        masses, undecided = self._laws[asked]
        self.undecided = max(self.undecided, undecided)
        return masses

    def told(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the rows of both models that we hand to the sampler, from the rows on which we judge it."""
        target, draft = fractions_if_exact(target_rows), fractions_if_exact(draft_rows)
        if self.raw is not None:
            target = rows_along(self.raw, prefix_numbers(paths, target.shape[-1]))
        if self.reported is not None:
            draft = rows_along(self.reported, prefix_numbers(paths, target.shape[-1]))
        return target, draft

    def batch_law(
        self, rows: Sequence[Row] | Sequence[Request]
    ) -> tuple[dict[tuple[Tokens, ...], Fraction], Fraction]:
        """The probability of every output of a batch, and the probability of undecided runs.

        The output of a request is () if it is not valid.  If the sampler fails, all outputs are ().
        """
        nothing: tuple[Tokens, ...] = tuple(() for _ in rows)
        if self.learns is not None:
            return self.learns(self.by_seed(self.on_batch(rows), nothing), rows)
        return self.follow(self.on_batch(rows), nothing)


def _key(paths: np.ndarray, target: np.ndarray, draft: np.ndarray) -> Any:
    """Key of a call.  Calls with equal drafts and rows have one law."""
    return paths.shape, paths.tobytes(), tuple(target.ravel()), tuple(draft.ravel())


def _known(tokens: Tokens, size: int) -> Tokens:
    """Check that all tokens are in the vocabulary, and return them."""
    unknown = [token for token in tokens if not 0 <= token < size]
    if unknown:
        raise UndefinedDrawError(f"it returns the token {unknown[0]}, which is not in 0..{size - 1}")
    return tokens
