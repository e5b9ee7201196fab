"""Call shipped samplers: one function per signature, from drafts to tokens.

Each function takes the shipped function, a ``Call`` and ``Drafts``, and returns the accepted tokens followed
by the correction token.  The sampler gets probabilities in float32.  Logits are their logarithms.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from spectheory.auditing.following.intercept import Journal
from spectheory.auditing.subjects.asked import Numbers
from spectheory.auditing.tape.atoms import quietly
from spectheory.auditing.tape.coins import CoinGenerator
from spectheory.auditing.tape.decisions import Tape
from spectheory.auditing.tape.ordinary import OrdinaryRun
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.validation import unknown_name
from spectheory.pairs.pair import ModelPair

TEMPERATURE = 0.5
"""The temperature of the logits processor; the logits are scaled so that the result is the target."""
SEED = 1
"""The seed of the generator that samplers are given."""
MOST_TOKENS = 10_000
"""A sampler returns fewer tokens, for fewer requests."""
PROGRAM = "program"
"""The signature of a program in any language (``programs``)."""
GENERATE, STEP = "generate", "step"
"""The signatures of whole decoding loops (``model_loops``), whose parameters we know by their names."""
LOOPS = (GENERATE, STEP)
FLATTENED = "flattened_batch"
"""The signature of samplers of a flattened batch (``flattened_batch``), called by the names of arguments."""
BY_NAME = (*LOOPS, FLATTENED)
ROUND, ROUND_BATCH = "round", "round_batch"
"""The signatures of functions that draft and verify (``drafting_rounds``), one request or several."""


class Call:
    """What a sampler gets in one run of calls in a row.

    Attributes:
        numbers: the decisions of the run, if we follow it, or ordinary random numbers.
        journal: receives the observations.
        generator: for samplers that take one.
    """

    def __init__(self, numbers: Numbers, journal: Journal) -> None:
        self.numbers, self.journal = numbers, journal
        self.generator = torch.Generator().manual_seed(SEED + numbers.seed)
        self._lent: list[tuple[str, torch.Tensor, torch.Tensor]] = []
        self.logprobs: list[list[float] | None] = []
        """The log-probabilities of the tokens of every request of a batch, if the sampler returns them."""

    def lend(self, **tensors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the arguments for the sampler, and keep copies for ``check_inputs``."""
        if self.numbers.is_watched or not isinstance(self.numbers, OrdinaryRun):
            with quietly():
                self._lent.extend((name, tensor, tensor.clone()) for name, tensor in tensors.items())
        return tensors

    def check_inputs(self) -> None:
        """Note a finding for each argument that the sampler has changed in place, also in a later call."""
        with quietly():
            for name, tensor, copy in self._lent:
                form, of_copy = ((each.dtype, each.shape) for each in (tensor, copy))
                # Bytes, because NaN does not equal itself.
                if form != of_copy or tensor.numpy().tobytes() != copy.numpy().tobytes():
                    self.journal.findings.add(("contract", f"its argument {name} is changed in place"))


class Request(NamedTuple):
    """One request of a batch with several drafted paths; K and L may differ between requests.

    Attributes:
        paths: [K, L].
        target_rows: [K, L+1, V].
        draft_rows: [K, L, V].
    """

    paths: torch.Tensor
    target_rows: torch.Tensor
    draft_rows: torch.Tensor


class Drafts(NamedTuple):
    """Drafted paths and their rows, as in ``Request``, in float64."""

    paths: np.ndarray
    target_rows: np.ndarray
    draft_rows: np.ndarray

    @property
    def request(self) -> Request:
        """The paths, and the rows in float32."""
        rows = (torch.tensor(part.astype(np.float32)) for part in self[1:])
        return Request(torch.tensor(self.paths.astype(np.int64)), *rows)


def _drafts_itself(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    raise InvalidInputError(
        "this signature is not called with given drafts; as_shipped makes a subject of it"
    )


class Signature(NamedTuple):
    """A way to call samplers.

    Attributes:
        form: the signature, in words.
        call: (function, call, drafts) -> the accepted tokens and the correction token.
        point_mass_drafts: whether the sampler assumes deterministic drafts, whose rows are point masses.
        several_paths: whether a call can carry several drafted paths.
    """

    form: str
    call: Callable[[Callable[..., Any], Call, Drafts], list[int]] = _drafts_itself
    point_mass_drafts: bool = False
    several_paths: bool = False


def _speculative_sampling(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    """Call with one path after a prompt of two tokens, as in the assisted generation of transformers.

    Logits are the logarithms of the rows plus a constant.
    """
    paths, target, draft = (part[:1] for part in drafts.request)
    ids, draft_logits, logits = call.lend(
        candidate_input_ids=torch.cat([torch.tensor([[1, 0]]), paths], dim=-1),
        candidate_logits=draft.log() + 1,
        new_logits=target.log() - 1,
    ).values()
    tokens, accepted = function(ids, draft_logits, paths.shape[1], logits)
    found = tokens[0].tolist()
    if _number(accepted) != len(found) - 1:
        call.journal.findings.add(
            ("contract", f"it returns {len(found)} tokens and says that {_number(accepted)} are accepted")
        )
    return found


def _number(value: Any) -> Any:
    """Convert a number of torch or numpy to a Python number."""
    return value.item() if isinstance(value, (torch.Tensor, np.ndarray, np.generic)) else value


def _whole(value: Any, most: int, what: str) -> int:
    """Check that a value is an integer in ``0..most``, and return it."""
    number = _number(value)
    if number not in range(most + 1):
        raise UndefinedDrawError(f"it says that {what} is {number!r}, which is not in 0..{most}")
    return int(number)


def _evaluate_posterior(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    """Call with deterministic paths after a root token, and sample from the returned row."""
    paths, target, _ = drafts.request
    root = torch.zeros((len(paths), 1), dtype=torch.long)
    given = call.lend(logits=target.log() * TEMPERATURE, candidates=torch.cat([root, paths], dim=-1))
    processor = lambda input_ids, logits: logits / TEMPERATURE  # noqa: E731
    best, accepted, row = function(*given.values(), processor)
    weights, size = row.flatten().tolist(), target.shape[-1]
    if len(weights) != size:
        raise UndefinedDrawError(f"it returns a row of {count_text(len(weights), 'number')}, not {size}")
    if not 0 < sum(weights) < math.inf or min(weights) < 0:
        raise UndefinedDrawError(f"it returns the row {weights}, from which no token can be drawn")
    # In place of the sampler's caller:
    correction: list[int] = torch.multinomial(torch.tensor(weights, dtype=torch.float64), 1).tolist()
    path = paths[_whole(best, len(paths) - 1, "the best path")].tolist()
    return [*path[: _whole(accepted, len(path), "the number of accepted tokens")], *correction]


def _coins(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    """Call with one path, L uniform numbers for acceptance, and one for the correction token."""
    (path, *_), (target, *_), (draft, *_) = drafts.request
    coins = torch.rand(len(path) + 1)
    given = call.lend(draft_tokens=path, target_probs=target, draft_probs=draft)
    return _token_list(function(*given.values(), coins[:-1], coins[-1]))


def _sampler(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    given = call.lend(**drafts.request._asdict())
    return _token_list(function(*given.values(), call.generator))


def _program(program: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    """Call a program in any language, with rows in float64; see ``programs``."""
    rows = {name: part.tolist() for name, part in drafts._asdict().items()}
    return _token_list(program({**rows, "seed": call.numbers.seed}))


def _numpy_sampler(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    """Call with float64 arrays and a generator of numpy, as ``from_sampler`` does."""
    rows = [array.astype(float) for array in drafts[1:]]
    generator: Any = CoinGenerator(call.numbers) if isinstance(call.numbers, Tape) else None
    generator = generator or np.random.default_rng(call.numbers.seed)
    return _token_list(function(drafts.paths.copy(), *rows, generator))


class _Row(NamedTuple):
    draft_tokens: torch.Tensor
    target_probs: torch.Tensor
    draft_probs: torch.Tensor
    is_greedy: bool = False
    padding: int = 0
    seed: int | None = None


_READ: set[str] = set()
"""The fields that a sampler has asked for, of those that not every sampler knows."""


class Row(_Row):
    """One request of a batch.

    Attributes:
        draft_tokens: [L], which may differ between the rows of a batch.
        target_probs: [L+1, V].
        draft_probs: [L, V].
        is_greedy: whether the request has temperature 0.
        padding: the number of placeholders, -1, after the drafted tokens; they must be rejected.
        seed: the seed of the request, if it has one: its random numbers must be those of a generator with
            this seed, whatever requests are beside it.
    """

    @property
    def is_greedy(self) -> bool:
        _READ.add("is_greedy")
        return self[3]

    @property
    def seed(self) -> int | None:
        _READ.add("seed")
        return self[5]


def _path_batch_of_one(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    return verified_batch(function, call, [drafts.request])[0]


def _batch_of_one(function: Callable[..., Any], call: Call, drafts: Drafts) -> list[int]:
    (path, *_), (target, *_), (draft, *_) = drafts.request
    return verified_batch(function, call, [Row(path, target, draft)])[0]


def verified_batch(function: Callable[..., Any], call: Call, rows: Sequence[Any]) -> list[list[int]]:
    """Return the tokens of every ``Row`` or ``Request``.  If a tensor changes in place, note a finding.

    The sampler returns the tokens of every request, or pairs of tokens and log-probabilities.  Requests with
    a seed get another one in every run with other numbers.
    """
    rows = [_in_run(row, call) for row in rows]
    tensors = {
        f"rows[{number}].{name}": tensor
        for number, row in enumerate(rows)
        for name, tensor in zip(row._fields[:3], row[:3], strict=True)
    }
    handed = list(rows)
    _READ.clear()
    call.lend(**tensors)
    # All of them before the first is read: requests may share the memory of their tokens.
    returned = list(islice(function(handed, call.generator), MOST_TOKENS))
    parts = [answer if _has_logprobs(answer) else (answer, None) for answer in returned]
    found = [_token_list(tokens) for tokens, _ in parts]
    call.logprobs[:] = [None if logprobs is None else list(map(float, logprobs)) for _, logprobs in parts]
    call.journal.reads |= _READ
    if list(map(id, handed)) != list(map(id, rows)):
        call.journal.findings.add(("contract", "its argument rows is changed in place"))
    if len(found) != len(rows):
        raise InvalidOutcomeError(
            f"the sampler returned the tokens of {count_text(len(found), 'request')}, expected {len(rows)}"
        )
    return found


def _in_run(row: Any, call: Call) -> Any:
    seed = row.seed if isinstance(row, Row) else None
    return row if seed is None else row._replace(seed=seed + call.numbers.seed)


def _has_logprobs(answer: Any) -> bool:
    """Whether the answer for a request is a pair of tokens and their log-probabilities."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return False
    return isinstance(answer[1], (list, tuple)) or getattr(answer[1], "ndim", 0) == 1


def _token_list(returned: Any) -> list[int]:
    if isinstance(returned, torch.Tensor):
        return returned.flatten().tolist()
    tokens = list(islice(returned, MOST_TOKENS))
    if len(tokens) == MOST_TOKENS:
        raise InvalidOutcomeError(f"the sampler returned {MOST_TOKENS} tokens or more, or does not end")
    return tokens


SIGNATURES: Mapping[str, Signature] = {
    "speculative_sampling": Signature(
        "(candidate_input_ids, candidate_logits, candidate_length, new_logits) -> (tokens, accepted)",
        _speculative_sampling,
    ),
    "evaluate_posterior": Signature(
        "(logits, candidates, logits_processor) -> (best_candidate, accept_length, row)",
        _evaluate_posterior,
        point_mass_drafts=True,
        several_paths=True,
    ),
    "coins": Signature("(draft_tokens, target_probs, draft_probs, coins, final_coin) -> tokens", _coins),
    "batch": Signature("(rows, generator) -> the tokens of every row", _batch_of_one),
    "path_batch": Signature(
        "(requests, generator) -> the tokens of every request", _path_batch_of_one, several_paths=True
    ),
    "sampler": Signature(
        "(paths, target_rows, draft_rows, generator) -> tokens", _sampler, several_paths=True
    ),
    "numpy": Signature("(paths, target_rows, draft_rows, rng) -> tokens", _numpy_sampler, several_paths=True),
    PROGRAM: Signature("(question) -> tokens", _program, several_paths=True),
    ROUND: Signature("(text, target, draft, draft_length, generator) -> (draft_tokens, draft_probs, tokens)"),
    ROUND_BATCH: Signature(
        "(texts, target, draft, draft_length, generator) -> (draft_tokens, draft_probs, tokens) per text"
    ),
    FLATTENED: Signature(
        "(draft_token_ids, cu_num_draft_tokens, draft_probs, target_probs, ..) -> tokens [B, max + 1]"
    ),
    GENERATE: Signature("(prompt, target_model, draft_model, max_new_tokens, ..) -> the text"),
    STEP: Signature("(prompt, target_model, draft_model, ..) -> the tokens of one step"),
}
"""Name -> signature."""


def signature_called(name: str) -> Signature:
    if name not in SIGNATURES:
        raise unknown_name("signature", name, SIGNATURES)
    return SIGNATURES[name]


def with_point_mass_drafts(pair: ModelPair) -> ModelPair:
    """Make the drafts of a pair deterministic: each row moves to its most likely token, ties by lower index.

    Example:
        >>> from spectheory import instances
        >>> print(with_point_mass_drafts(instances.two_token(1)).draft[0])
        [[Fraction(1, 1) Fraction(0, 1)]]
    """

    def at_the_likeliest(level: np.ndarray) -> np.ndarray:
        rows = np.full(level.shape, Fraction(0), dtype=object)
        rows[np.arange(len(level)), level.argmax(axis=1)] = Fraction(1)
        return rows

    return ModelPair(pair.target, tuple(map(at_the_likeliest, pair.draft)), pair.vocab)
