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
from itertools import chain
from typing import Any

from spectheory.pairs.contexts import Context, all_contexts
from spectheory.pairs.drafts import DraftProcess, Iid, KeptDrafts, Shortened
from spectheory.pairs.drafts.kept import DisclosedDrafts
from spectheory.pairs.drafts.repairs import with_cemetery, with_conditioned_rows
from spectheory.pairs.grammars import conditional_pair
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.processors import presence_penalty, processed
from spectheory.verification.defective.other_rows import OtherTargetRows, changes_with_length


@dataclass(frozen=True)
class WrongDrafter:
    """A drafter that breaks a lossless verifier, and its right partner.

    Attributes:
        topic, name: the part of theory.md §8, and the name.  The paths of a "batch" are the drafts of several
            requests (``exact.batches``).
        wrong, right: the mistake and the fix, in words.
        pair, process, verifier: where the mistake is seen.
        right_verifier, right_pair, right_process: the partner, with total variation 0.  By default token
            verification on the same pair.  Kept drafts are handed over with their own law (repair A).
    """

    topic: str
    name: str
    wrong: str
    right: str
    pair: ModelPair
    process: DraftProcess = Iid(1)  # noqa: RUF009, it is frozen
    verifier: Any = "token"
    right_verifier: Any = "token"
    right_pair: ModelPair | None = None
    right_process: DraftProcess | None = None

    def partner(self) -> tuple[Any, ModelPair, DraftProcess]:
        """Return (verifier, pair, process) of the right partner."""
        process = self.right_process or self.process
        if self.right_process is None and isinstance(process, KeptDrafts | DisclosedDrafts):
            process = with_conditioned_rows(process, self.pair)
        return self.right_verifier, self.right_pair or self.pair, process


@cache
def drafters() -> dict[str, WrongDrafter]:
    """Make all known-wrong drafters: name -> drafter."""
    rooms = (_one_token, _joint_laws, _rules, _lengths, _several_paths, _target_rows)
    return {entry.name: entry for entry in chain.from_iterable(room() for room in rooms)}


Row = list[str]
HALF = Fraction(1, 2)
FAIR, NINE, SKEW, OTHER = ["1/2", "1/2"], ["9/10", "1/10"], ["2/3", "1/3"], ["1/3", "2/3"]
UNIFORM, STEPS, FIRST_TWO = ["1/3"] * 3, ["1/2", "1/3", "1/6"], ["1/2", "1/2", "0"]
STEPS_CUT, MASKED = ["3/5", "2/5", "0"], ["3/4", "1/4", "0"]
_pair = ModelPair.context_free_pair


def _then(first: Row, target: Row, draft: Row) -> ModelPair:
    """Both models have one row at first, and other rows after it."""
    rows, drafted = ({c: row if c else first for c in all_contexts(2, 2)} for row in (target, draft))
    return ModelPair.from_contexts(rows, {c: drafted[c] for c in all_contexts(2, 1)}, 2)


def _one_token() -> Iterator[WrongDrafter]:
    """One token is drafted from one law, and another row is handed over.  No token makes up the rest."""
    law, quarters, lost = "hand over the law of the kept token", ["3/4", "1/4"], ["1/2", "1/4"]
    entries: tuple[tuple[str, str, str, str, Row, Row, Row], ...] = (
        ("length", "likelier_of_two", "of two sampled drafts keep the likelier", law,
         SKEW, ["8/9", "1/9"], SKEW),
        ("length", "redraw_unlikely", "draw again once if the token is below 1/2", law,
         NINE, ["99/100", "1/100"], NINE),
        ("vocabulary", "permuted_row", "the row is in another order than the tokens", "one order",
         ["1/4", "3/4"], quarters, ["1/4", "3/4"]),
        ("vocabulary", "masked_not_renormalised", "masked before sampling, raw row handed over",
         "renormalise", FAIR, SKEW, lost),
        ("vocabulary", "unmapped_dropped", "an unmapped draft is dropped, raw row",
         "the row given that it is kept", FAIR, lost, lost),
        ("vocabulary", "unmapped_to_zero", "an unmapped draft becomes token 0, its mass is not added",
         "add it", FAIR, quarters, lost),
        ("vocabulary", "last_write_wins", "of two draft tokens with one image the last row entry counts",
         "sum", OTHER, FAIR, ["1/4", "1/2"]),
        ("vocabulary", "shifted_row", "the row is scattered one id further than the tokens", "one table",
         UNIFORM, STEPS, ["1/6", "1/2", "1/3"]),
        ("vocabulary", "string_probabilities", "a, b re-encoded to a, b, ab with the strings' probabilities",
         "the law of the re-encoded tokens", UNIFORM, ["1/4", "1/2", "1/4"], ["1/2", "1/2", "1/4"]),
        ("processors", "top_k_draft_cut_handed_raw", "drafts drawn cut, row handed over raw", "the same",
         STEPS_CUT, FIRST_TWO, UNIFORM),
        ("processors", "top_k_draft_raw_handed_cut", "drafts drawn raw, row handed over cut", "the same",
         STEPS_CUT, UNIFORM, FIRST_TWO),
        ("grammar", "draft_masked_raw_row", "the draft is masked, the raw row handed over",
         "hand over the masked row", MASKED, FIRST_TWO, UNIFORM),
    )  # fmt: skip
    for topic, name, wrong, right, target, drawn, handed in entries:
        kept: dict[Context, Any] = {(token,): Fraction(prob) for token, prob in enumerate(drawn)}
        kept[()] = 1 - sum(kept.values())
        pair, process = _pair(target, target, 1), KeptDrafts(kept, {(): handed})
        yield WrongDrafter(topic, name, wrong, right, pair, process)
    masked, cut = _pair(MASKED, UNIFORM, 1), KeptDrafts({(0,): "1/3", (1,): "1/3", (): "1/3"})
    yield WrongDrafter(
        "grammar", "illegal_draft_cut",
        "a sampled draft is cut at a forbidden token, full row, correction from p",
        "a cut counts as a rejection", masked, cut, right_pair=with_cemetery(cut, masked),
        right_process=Iid(1),
    )  # fmt: skip


def _joint_laws() -> Iterator[WrongDrafter]:
    """Two tokens of a joint law, and rows that are not its conditionals."""
    fair, noise = _pair(FAIR, FAIR, 2), _then(SKEW, FAIR, FAIR)
    near = {0: ["3/4", "1/4"], 1: ["1/4", "3/4"]}
    joint = {(a, b): "3/8" if a == b else "1/8" for a in (0, 1) for b in (0, 1)}
    entries: tuple[tuple[str, str, str, ModelPair, DraftProcess], ...] = (
        ("equal_tokens", "two equal tokens, marginals handed over", "conditionals", fair,
         KeptDrafts({(0, 0): "1/2", (1, 1): "1/2"})),
        ("common_noise", "one uniform number for two positions, rows as if independent", "fresh noise",
         noise, KeptDrafts({(0, 0): "1/2", (0, 1): "1/6", (1, 1): "1/3"})),
        ("beam_as_sample", "the likeliest path is verified as a sample", "one-hot rows",
         _pair(SKEW, SKEW, 2), KeptDrafts({(0, 0): "1"})),
        ("rows_of_another_order", "drawn in the order 2, 1; the rows drawn from are handed over",
         "conditionals from left to right", fair,
         DisclosedDrafts([(prob, path, [near[path[1]], FAIR]) for path, prob in joint.items()])),
    )  # fmt: skip
    for name, wrong, right, pair, process in entries:
        yield WrongDrafter("marginals", name, wrong, right, pair, process)


def _before_unlikely(tokens: Context, rows: Any) -> int:
    """The number of tokens before the first one with a probability below 1/2."""
    below = (i for i, (token, row) in enumerate(zip(tokens, rows, strict=True)) if row[token] < HALF)
    return next(below, len(tokens))


def _after_unlikely(tokens: Context, rows: Any) -> int:
    return min(len(tokens), 1 + _before_unlikely(tokens, rows))


def _rules() -> Iterator[WrongDrafter]:
    """A length rule, for one path or for a batch of two requests.  The partner is another rule."""
    after, coin = "stop after the unlikely token, and keep it", lambda tokens, rows: {0: "1/2", 1: "1/2"}
    past, first = "a budget read from the past", lambda tokens, rows: (1, 0)
    on_zero = lambda tokens, rows: 2 * (tokens[0] == 0)  # noqa: E731
    likely = _pair(NINE, NINE, 1), _pair(NINE, NINE, 2), _pair(NINE, NINE, 3)
    fair, skew = _pair(FAIR, FAIR, 1), _pair(SKEW, SKEW, 1)
    rules: tuple[tuple[str, str, str, str, tuple[ModelPair, ...], Any, Any], ...] = (
        ("length", "drop_unlikely_L{}", "drop the first sampled token below 1/2", after,
         likely, _before_unlikely, _after_unlikely),
        ("length", "all_or_nothing_L{}", "verify nothing if a drafted token is below 1/2", after,
         likely[1:], lambda tokens, rows: len(tokens) * (_before_unlikely(tokens, rows) == len(tokens)),
         _after_unlikely),
        ("length", "look_ahead_one_L{}", "verify token i only if token i + 1 is likely", after,
         likely[1:], lambda tokens, rows: max(0, _before_unlikely(tokens, rows) - 1), _after_unlikely),
        ("length", "own_probability", "verify a token iff its own probability exceeds 1/2",
         "decide before the draw", (_pair(FAIR, NINE, 1),), _before_unlikely, coin),
        ("length", "one_token_only", "keep token 0 only", "keep by a coin",
         (fair,), lambda tokens, rows: 1 - tokens[0], coin),
        ("length", "global_maximum_on_a_staircase",
         "verify the global maximum of tokens per cost, costs (1, 2, 2)", "stop at the first descent",
         (_pair(FAIR, FAIR, 2),), on_zero, lambda tokens, rows: 0),
        ("length", "ranking_without_break", "rank by survival, and go on after the first descent",
         "stop there", (_pair(["7/10", "3/10"], FAIR, 2),), on_zero, lambda tokens, rows: 1),
        ("batch", "both_if_equal", "verify both requests iff their drafts agree", past,
         (fair,), lambda tokens, rows: (int(tokens[0] == tokens[1]),) * 2, first),
        ("batch", "each_by_the_other", "verify each request iff the other drafted 0", past,
         (fair,), lambda tokens, rows: (1 - tokens[1][0], 1 - tokens[0][0]), first),
        ("batch", "slot_to_the_likelier", "give the slot to the request with the likelier drafted token",
         past, (skew,), lambda tokens, rows: (1, 0) if tokens[0] <= tokens[1] else (0, 1), first),
    )  # fmt: skip
    for topic, name, wrong, right, pairs, *both in rules:
        for pair in pairs:
            process, partner = (Shortened(1 + (topic == "batch"), rule) for rule in both)
            label = name.format(pair.draft_length)
            yield WrongDrafter(topic, label, wrong, right, pair, process, right_process=partner)


def _lengths() -> Iterator[WrongDrafter]:
    yield WrongDrafter(
        "length", "verifier_by_length_12", "token verification of one token, exact match of two",
        "one verifier", _pair(FAIR, FAIR, 2), Shortened(1, lambda tokens, rows: 1 + tokens[0]),
        changes_with_length({1: "token", 2: "naive_sampling"}),
    )  # fmt: skip
    for suffix, rows in (("", (OTHER, SKEW)), ("_fifths", (["1/5", "4/5"], ["4/5", "1/5"]))):
        yield WrongDrafter(
            "length", f"verifier_by_length_23{suffix}", "block verification from three tokens on",
            "block always", _pair(*rows, 3), Shortened(1, lambda tokens, rows: 2 + (tokens[:2] == (0, 0))),
            changes_with_length({1: "token", 3: "block"}), "block",
        )  # fmt: skip
    reused = KeptDrafts({(a, b): "3/16" if b else "5/16" for a in (0, 1) for b in (0, 1)})
    yield WrongDrafter(
        "length", "reused_tail", "verify one token iff the second is 1, and use the dropped tail again",
        "draw a new tail", _pair(FAIR, FAIR, 2), reused,
        right_process=Shortened(1, lambda tokens, rows: tokens[1]),
    )  # fmt: skip


def _several_paths() -> Iterator[WrongDrafter]:
    rules = {
        "agree": lambda tokens, rows: 1 + (tokens[0][0] == tokens[1][0]),
        "differ": lambda tokens, rows: 1 + (tokens[0][0] != tokens[1][0]),
        "first_is_0": lambda tokens, rows: 1 + (tokens[0][0] == 0),
    }
    pairs = (
        ("greedy_multipath", "two_token", _pair(OTHER, SKEW, 2)),
        ("mixed_multipath", "two_token", _pair(OTHER, SKEW, 2)),
        ("greedy_multipath", "fair_then_skew", _then(FAIR, OTHER, SKEW)),
        ("greedy_multipath", "fair_then_quarter", _then(FAIR, ["1/4", "3/4"], FAIR)),
    )
    for name, label, pair in pairs:
        for when, rule in rules.items():
            yield WrongDrafter(
                "several paths", f"{name}_{label}_{when}",
                f"cut both drafts to one token, or to two if: {when.replace('_', ' ')}",
                "multi_round, or a rule for each path by itself",
                pair, Shortened(2, rule), name, "multi_round",
            )  # fmt: skip


def _target_rows() -> Iterator[WrongDrafter]:
    """Token verification with other target rows than the request's, in all places or in one."""
    halved, raw = presence_penalty("1/2"), [HALF, HALF]
    row = _pair(FAIR, FAIR, 1).target[0][0]
    penalised = tuple(processed(_pair(FAIR, SKEW, length), halved) for length in (1, 2))
    steps, cut, fair, uniform = map(_constant, (STEPS, STEPS_CUT, FAIR, UNIFORM))
    no_two_zeros = {"any": {0: "zero", 1: "any"}, "zero": {1: "any"}}
    projected, conditional = (
        conditional_pair(_pair(FAIR, SKEW, 1), no_two_zeros, "any", masked) for masked in (True, False)
    )

    def after(text: Context) -> Any:
        return list(halved(text, row))

    def projected_row(path: Context, depth: int) -> Any:
        return ["0", "1"] if depth and path[0] == 0 else FAIR

    penalties: dict[str, Any] = {
        "without_drafted_tokens": lambda path, depth: after(()),
        "first_row_only": lambda path, depth: raw if depth else after(()),
        "bonus_row_raw": lambda path, depth: raw if depth == len(path) else after(path[:depth]),
        "lags_one_token": lambda path, depth: after(path[: max(0, depth - 1)]),
        "judged_token_included": lambda path, depth: after(path[: depth + 1]),
        "all_drafted_tokens": lambda path, depth: after(path),
    }
    cuts = {
        "bonus_raw": (cut, _constant(STEPS_CUT, bonus=STEPS)),
        "only_bonus": (steps, _constant(STEPS, bonus=STEPS_CUT)),
        "residual_raw": (cut, _constant(STEPS, bonus=STEPS_CUT)),
        "acceptance_raw": (steps, cut),
    }
    entries: tuple[tuple[str, str, str, str, tuple[ModelPair, ...], tuple[Any, ...]], ...] = (
        *(("processors", f"penalty_{name}_L{{}}", f"penalty: {name.replace('_', ' ')}",
           "the text is the prompt and the drafted tokens before the row", penalised, (rows,))
          for name, rows in penalties.items()),
        *(("processors", f"top_k_{name}", f"top-k 2 of the target: {name.replace('_', ' ')}", "on all rows",
           (_pair(STEPS_CUT, UNIFORM, 1),), rows) for name, rows in cuts.items()),
        ("grammar", "mask_on_draft_only", "the target's rows are not masked", "mask them",
         (_pair(FIRST_TWO, FIRST_TWO, 1),), (uniform,)),
        ("grammar", "bonus_row_unmasked", "the bonus row is not masked", "mask all rows",
         (projected,), (projected_row, fair)),
        ("grammar", "projected_for_conditional", "masked rows where the target given the grammar is meant",
         "rows p h(c, t)/h(c)", (conditional,), (projected_row,)),
    )  # fmt: skip
    for topic, name, wrong, right, pairs, rows in entries:
        for pair in pairs:
            label = name.format(pair.draft_length)
            yield WrongDrafter(topic, label, wrong, right, pair, verifier=OtherTargetRows(*rows))


def _constant(row: Row, bonus: Row | None = None) -> Callable[[Context, int], Row]:
    return lambda path, depth: bonus if bonus and depth == len(path) else row
