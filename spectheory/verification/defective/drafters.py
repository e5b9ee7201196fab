"""Known-wrong drafters: what engines hand over to a lossless verifier and should not (theory.md §8).

Each entry has a pair with different, asymmetric models where this matters: fair or equal pairs hide some.
``certify`` or ``batch_law`` recompute its total variation; nothing here is a stored result.

>>> from spectheory import certify
>>> wrong = drafters()["drop_unlikely_L1"]
>>> print(certify(wrong.verifier, wrong.pair, wrong.process, with_optimum=False).total_variation)
9/100
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts import DraftProcess, Iid, KeptDrafts, Shortened
from spectheory.pairs.drafts.kept import DisclosedDrafts
from spectheory.pairs.drafts.repairs import with_cemetery
from spectheory.pairs.grammars import conditional_pair, projected_pair
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import presence_penalty, processed
from spectheory.verification.defective.other_rows import OtherTargetRows, changes_with_length


@dataclass(frozen=True)
class WrongDrafter:
    """A drafter that breaks a lossless verifier, and its right partner.

    Attributes:
        name, topic: its name, and the part of theory.md §8.
        wrong, right: the mistake and the fix, in words.
        pair, process, verifier: where the mistake is seen.
        right_pair, right_process, right_verifier: the partner, with total variation 0.
        is_batch: True if the paths are the drafts of several requests (``exact.batches``).
    """

    name: str
    topic: str
    wrong: str
    right: str
    pair: ModelPair
    process: DraftProcess
    right_process: DraftProcess
    verifier: Any = "token"
    right_pair: ModelPair | None = None
    right_verifier: Any = None
    is_batch: bool = False

    def partner(self) -> tuple[Any, ModelPair, DraftProcess]:
        """Return (verifier, pair, process) of the right partner."""
        return self.right_verifier or self.verifier, self.right_pair or self.pair, self.right_process


@cache
def drafters() -> dict[str, WrongDrafter]:
    """Make all known-wrong drafters: name -> drafter."""
    rooms = (_lengths, _several_paths, _batches, _vocabularies, _penalties, _cuts, _grammars, _joint_laws)
    found = [entry for room in rooms for entry in room()]
    return {entry.name: entry for entry in found}


Row = list[str]
HALF = Fraction(1, 2)
FAIR, NINE, SKEW, OTHER = ["1/2", "1/2"], ["9/10", "1/10"], ["2/3", "1/3"], ["1/3", "2/3"]
UNIFORM, STEPS = ["1/3"] * 3, ["1/2", "1/3", "1/6"]
ONE = Iid(1)


def _pair(target: Row, draft: Row, length: int) -> ModelPair:
    return ModelPair.context_free_pair(target, draft, length)


def _kept(
    topic: str, name: str, wrong: str, right: str, pair: ModelPair, law: Any, rows: Any, right_rows: Any
) -> WrongDrafter:
    """Hand over tokens of one law with wrong and with right rows; ``None`` for the rows of the pair."""
    return WrongDrafter(name, topic, wrong, right, pair, KeptDrafts(law, rows), KeptDrafts(law, right_rows))


def _before_unlikely(tokens: Context, rows: Any) -> int:
    """The number of tokens before the first one with a probability below 1/2."""
    below = (i for i, (token, row) in enumerate(zip(tokens, rows, strict=True)) if row[token] < HALF)
    return next(below, len(tokens))


def _after_unlikely(tokens: Context, rows: Any) -> int:
    return min(len(tokens), 1 + _before_unlikely(tokens, rows))


def _all_or_nothing(tokens: Context, rows: Any) -> int:
    return len(tokens) * (_before_unlikely(tokens, rows) == len(tokens))


def _look_ahead(tokens: Context, rows: Any) -> int:
    return max(0, _before_unlikely(tokens, rows) - 1)


def _lengths() -> Iterator[WrongDrafter]:
    after = "stop after the unlikely token, and keep it"

    def entry(
        name: str, wrong: str, right: str, pair: ModelPair, rule: Any, partner: Any, **more: Any
    ) -> Any:
        return WrongDrafter(
            name, "length", wrong, right, pair, Shortened(1, rule), Shortened(1, partner), **more
        )

    rules = (
        ("drop_unlikely", "drop the first sampled token below 1/2", _before_unlikely, (1, 2, 3)),
        ("all_or_nothing", "verify nothing if a drafted token is below 1/2", _all_or_nothing, (2, 3)),
        ("look_ahead_one", "verify token i only if token i + 1 is likely", _look_ahead, (2, 3)),
    )
    for name, wrong, rule, lengths in rules:
        for length in lengths:
            yield entry(f"{name}_L{length}", wrong, after, _pair(NINE, NINE, length), rule, _after_unlikely)
    coin = {0: "1/2", 1: "1/2"}
    yield entry(
        "own_probability", "verify a token iff its own probability exceeds 1/2", "decide before the draw",
        _pair(FAIR, NINE, 1), _before_unlikely, lambda tokens, rows: coin,
    )  # fmt: skip
    yield entry(
        "one_token_only", "keep token 0 only", "keep by a coin",
        _pair(FAIR, FAIR, 1), lambda tokens, rows: 1 - tokens[0], lambda tokens, rows: coin,
    )  # fmt: skip
    on_zero = lambda tokens, rows: 2 * (tokens[0] == 0)  # noqa: E731
    yield entry(
        "global_maximum_on_a_staircase", "verify the global maximum of tokens per cost, costs (1, 2, 2)",
        "stop at the first descent", _pair(FAIR, FAIR, 2), on_zero, lambda tokens, rows: 0,
    )  # fmt: skip
    yield entry(
        "ranking_without_break", "rank by survival, and go on after the first descent", "stop there",
        _pair(["7/10", "3/10"], FAIR, 2), on_zero, lambda tokens, rows: 1,
    )  # fmt: skip
    token_then_match = changes_with_length({1: "token", 2: "naive_sampling"})
    yield entry(
        "verifier_by_length_12", "token verification of one token, exact match of two", "one verifier",
        _pair(FAIR, FAIR, 2), lambda tokens, rows: 1 + tokens[0], lambda tokens, rows: 1 + tokens[0],
        verifier=token_then_match, right_verifier="token",
    )  # fmt: skip
    token_then_block = changes_with_length({1: "token", 3: "block"})
    for suffix, rows in (("", (OTHER, SKEW)), ("_fifths", (["1/5", "4/5"], ["4/5", "1/5"]))):
        rule = lambda tokens, rows: 2 + (tokens[:2] == (0, 0))  # noqa: E731
        yield entry(
            f"verifier_by_length_23{suffix}", "block verification from three tokens on", "block always",
            _pair(*rows, 3), rule, rule, verifier=token_then_block, right_verifier="block",
        )  # fmt: skip
    kept = {(a, b): "3/16" if b else "5/16" for a in (0, 1) for b in (0, 1)}
    yield WrongDrafter(
        "reused_tail", "length", "verify one token iff the second is 1, and use the dropped tail again",
        "draw a new tail", _pair(FAIR, FAIR, 2), KeptDrafts(kept),
        Shortened(1, lambda tokens, rows: tokens[1]),
    )  # fmt: skip
    for name, wrong, row, kept_row in (
        ("likelier_of_two", "of two sampled drafts keep the likelier", SKEW, ["8/9", "1/9"]),
        ("redraw_unlikely", "draw again once if the token is below 1/2", NINE, ["99/100", "1/100"]),
    ):
        law = {(token,): prob for token, prob in enumerate(kept_row)}
        right = "hand over the law of the kept token"
        yield _kept("length", name, wrong, right, _pair(row, row, 1), law, None, {(): kept_row})


def _several_paths() -> Iterator[WrongDrafter]:
    rules = {
        "agree": lambda tokens, rows: 1 + (tokens[0][0] == tokens[1][0]),
        "differ": lambda tokens, rows: 1 + (tokens[0][0] != tokens[1][0]),
        "first_is_0": lambda tokens, rows: 1 + (tokens[0][0] == 0),
    }
    contexts: list[Context] = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]

    def then(target: Row, draft: Row) -> ModelPair:
        rows = [{c: row if c else FAIR for c in contexts} for row in (target, draft)]
        return ModelPair.from_contexts(rows[0], {c: rows[1][c] for c in contexts[:3]}, 2)

    greedy, mixed = "greedy_multipath", "mixed_multipath"
    pairs = (
        ("two_token", _pair(OTHER, SKEW, 2), (greedy, mixed)),
        ("fair_then_skew", then(OTHER, SKEW), (greedy,)),
        ("fair_then_quarter", then(["1/4", "3/4"], FAIR), (greedy,)),
    )
    for label, pair, names in pairs:
        for name in names:
            for when, rule in rules.items():
                yield WrongDrafter(
                    f"{name}_{label}_{when}", "several paths",
                    f"cut both drafts to one token, or to two if: {when.replace('_', ' ')}",
                    "multi_round, or a rule for each path by itself",
                    pair, Shortened(2, rule), Shortened(2, rule), name, right_verifier="multi_round",
                )  # fmt: skip


def _batches() -> Iterator[WrongDrafter]:
    rules: tuple[tuple[str, str, Row, Any], ...] = (
        ("both_if_equal", "verify both requests iff their drafts agree", FAIR,
         lambda tokens, rows: (int(tokens[0] == tokens[1]),) * 2),
        ("each_by_the_other", "verify each request iff the other drafted 0", FAIR,
         lambda tokens, rows: (1 - tokens[1][0], 1 - tokens[0][0])),
        ("slot_to_the_likelier", "give the slot to the request with the likelier drafted token", SKEW,
         lambda tokens, rows: (1, 0) if tokens[0] <= tokens[1] else (0, 1)),
    )  # fmt: skip
    for name, wrong, row, rule in rules:
        yield WrongDrafter(
            name, "batch", wrong, "a budget read from the past", _pair(row, row, 1), Shortened(2, rule),
            Shortened(2, lambda tokens, rows: (1, 0)), is_batch=True,
        )  # fmt: skip


def _vocabularies() -> Iterator[WrongDrafter]:
    def entry(name: str, wrong: str, right: str, target: Row, law: Any, row: Row, right_row: Row) -> Any:
        pair = _pair(target, ["1"] + ["0"] * (len(target) - 1), 1)
        kept = {() if token is None else (token,): prob for token, prob in law.items()}
        return _kept("vocabulary", name, wrong, right, pair, kept, {(): row}, {(): right_row})

    cut = ["1/2", "1/4"]
    yield entry("permuted_row", "the row is in another order than the tokens", "one order",
                ["1/4", "3/4"], {0: "3/4", 1: "1/4"}, ["1/4", "3/4"], ["3/4", "1/4"])  # fmt: skip
    yield entry("masked_not_renormalised", "masked before sampling, raw row handed over", "renormalise",
                FAIR, {0: "2/3", 1: "1/3"}, cut, SKEW)  # fmt: skip
    yield entry("unmapped_dropped", "an unmapped draft is dropped, raw row", "the row given that it is kept",
                FAIR, {0: "1/2", 1: "1/4", None: "1/4"}, cut, SKEW)  # fmt: skip
    yield entry("unmapped_to_zero", "an unmapped draft becomes token 0, its mass is not added", "add it",
                FAIR, {0: "3/4", 1: "1/4"}, cut, ["3/4", "1/4"])  # fmt: skip
    yield entry("last_write_wins", "of two draft tokens with one image the last row entry counts", "sum",
                OTHER, {0: "1/2", 1: "1/2"}, ["1/4", "1/2"], FAIR)  # fmt: skip
    yield entry("shifted_row", "the row is scattered one id further than the tokens", "one table",
                UNIFORM, dict(enumerate(STEPS)), ["1/6", "1/2", "1/3"], STEPS)  # fmt: skip
    yield entry("string_probabilities", "a, b re-encoded to a, b, ab with the strings' probabilities",
                "the law of the re-encoded tokens", UNIFORM, {0: "1/4", 1: "1/2", 2: "1/4"},
                ["1/2", "1/2", "1/4"], ["1/4", "1/2", "1/4"])  # fmt: skip


def _penalties() -> Iterator[WrongDrafter]:
    halved, raw = presence_penalty("1/2"), [HALF, HALF]
    row = _pair(FAIR, FAIR, 1).target[0][0]

    def after(text: Context) -> Any:
        return list(halved(text, row))

    texts: dict[str, Any] = {
        "without_drafted_tokens": lambda path, depth: after(()),
        "first_row_only": lambda path, depth: raw if depth else after(()),
        "bonus_row_raw": lambda path, depth: raw if depth == len(path) else after(path[:depth]),
        "lags_one_token": lambda path, depth: after(path[: max(0, depth - 1)]),
        "judged_token_included": lambda path, depth: after(path[: depth + 1]),
        "all_drafted_tokens": lambda path, depth: after(path),
    }
    right = OtherTargetRows(lambda path, depth: after(path[:depth]))
    for name, rows_of in texts.items():
        for length in (1, 2):
            yield WrongDrafter(
                f"penalty_{name}_L{length}", "processors", f"penalty: {name.replace('_', ' ')}",
                "the text is the prompt and the drafted tokens before the row",
                processed(_pair(FAIR, SKEW, length), halved), ONE, ONE, OtherTargetRows(rows_of),
                right_verifier=right,
            )  # fmt: skip


def _constant(row: Row) -> Callable[[Context, int], Row]:
    return lambda path, depth: row


def _cuts() -> Iterator[WrongDrafter]:
    raw, cut = _constant(STEPS), _constant(["3/5", "2/5", "0"])
    pair = _pair(["3/5", "2/5", "0"], UNIFORM, 1)
    parts = {
        "bonus_raw": (cut, cut, raw),
        "only_bonus": (raw, raw, cut),
        "residual_raw": (cut, raw, cut),
        "acceptance_raw": (raw, cut, cut),
    }
    for name, rows in parts.items():
        yield WrongDrafter(
            f"top_k_{name}", "processors", f"top-k 2 of the target: {name.replace('_', ' ')}",
            "on all rows", pair, ONE, ONE, OtherTargetRows(*rows), right_verifier=OtherTargetRows(cut),
        )  # fmt: skip
    rows_of = {"cut": ["1/2", "1/2", "0"], "raw": UNIFORM}
    for first, second in (("cut", "raw"), ("raw", "cut")):
        law = {(token,): prob for token, prob in enumerate(rows_of[first])}
        yield _kept(
            "processors", f"top_k_draft_{first}_handed_{second}",
            f"drafts drawn {first}, row handed over {second}", "the same", pair, law,
            {(): rows_of[second]}, {(): rows_of[first]},
        )  # fmt: skip


def _grammars() -> Iterator[WrongDrafter]:
    masked = _pair(["3/4", "1/4", "0"], UNIFORM, 1)
    cut = KeptDrafts({(0,): "1/3", (1,): "1/3", (): "1/3"})
    yield WrongDrafter(
        "illegal_draft_cut", "grammar",
        "a sampled draft is cut at a forbidden token, full row, correction from p",
        "a cut counts as a rejection", masked, cut, ONE, right_pair=with_cemetery(cut, masked),
    )  # fmt: skip
    half = ["1/2", "1/2", "0"]
    yield _kept(
        "grammar", "draft_masked_raw_row", "the draft is masked, the raw row handed over",
        "hand over the masked row", masked, {(0,): "1/2", (1,): "1/2"}, None, {(): half},
    )  # fmt: skip
    unmasked = OtherTargetRows(_constant(UNIFORM))
    yield WrongDrafter(
        "mask_on_draft_only", "grammar", "the target's rows are not masked", "mask them",
        _pair(half, half, 1), ONE, ONE, unmasked, right_verifier="token",
    )  # fmt: skip
    no_two_zeros = {"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}
    fair = _pair(FAIR, SKEW, 1)
    projected, conditional = (make(fair, no_two_zeros, "any") for make in (projected_pair, conditional_pair))

    def projected_row(path: Context, depth: int) -> Any:
        return ["0", "1"] if depth and path[0] == 0 else FAIR

    yield WrongDrafter(
        "bonus_row_unmasked", "grammar", "the bonus row is not masked", "mask all rows", projected, ONE, ONE,
        OtherTargetRows(projected_row, None, _constant(FAIR)), right_verifier=OtherTargetRows(projected_row),
    )  # fmt: skip
    yield WrongDrafter(
        "projected_for_conditional", "grammar", "masked rows where the target given the grammar is meant",
        "rows p h(c, t)/h(c)", conditional, ONE, ONE, OtherTargetRows(projected_row), right_verifier="token",
    )  # fmt: skip


def _joint_laws() -> Iterator[WrongDrafter]:
    fair = _pair(FAIR, FAIR, 2)
    yield _kept(
        "marginals", "equal_tokens", "two equal tokens, marginals handed over", "conditionals", fair,
        {(0, 0): "1/2", (1, 1): "1/2"}, None, {(0,): ["1", "0"], (1,): ["0", "1"]},
    )  # fmt: skip
    rows = {(): SKEW, (0,): FAIR, (1,): FAIR}
    target = rows | {(a, b): FAIR for a in (0, 1) for b in (0, 1)}
    yield _kept(
        "marginals", "common_noise", "one uniform number for two positions, rows as if independent",
        "fresh noise", ModelPair.from_contexts(target, rows, 2),
        {(0, 0): "1/2", (0, 1): "1/6", (1, 1): "1/3"}, None, {(0,): ["3/4", "1/4"], (1,): ["0", "1"]},
    )  # fmt: skip
    yield _kept(
        "marginals", "beam_as_sample", "the likeliest path is verified as a sample", "one-hot rows",
        _pair(SKEW, SKEW, 2), {(0, 0): "1"}, None, {(): ["1", "0"], (0,): ["1", "0"]},
    )  # fmt: skip
    near = {0: ["3/4", "1/4"], 1: ["1/4", "3/4"]}
    joint = {(a, b): "3/8" if a == b else "1/8" for a in (0, 1) for b in (0, 1)}
    events = [(prob, path, [near[path[1]], FAIR]) for path, prob in joint.items()]
    yield WrongDrafter(
        "rows_of_another_order", "marginals", "drawn in the order 2, 1; the rows drawn from are handed over",
        "conditionals from left to right", fair, DisclosedDrafts(events),
        KeptDrafts(joint, {(token,): near[token] for token in (0, 1)}),
    )  # fmt: skip
