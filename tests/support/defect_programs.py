"""Every defect once more, as the sampling program in which the mistake would be made.

Plain Python on lists of Fractions, one draft after the other, with a die where a decoder would call its
random number generator.  ``exact_law`` runs a program on every sequence of outcomes of its dice, so
that the law of what it returns is exact.  Nothing here is shared with the package but the pairs.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any

from reference import draft_row, target_row
from spectheory.pairs.pair import ModelPair

Context = tuple[int, ...]
Row = list[Fraction]
Rows = Callable[[Context], Row]


class Dice:
    """Random choices that follow a script and, past its end, take the first possible outcome."""

    def __init__(self, script: Sequence[int]) -> None:
        self.script, self.made, self.possible = list(script), [], []
        self.prob = Fraction(1)

    def draw(self, weights: Sequence[Any]) -> int:
        possible = [index for index, weight in enumerate(weights) if weight > 0]
        number = len(self.made)
        index = self.script[number] if number < len(self.script) else possible[0]
        self.made.append(index)
        self.possible.append(possible)
        self.prob *= Fraction(weights[index]) / sum(weights)
        return index

    def flip(self, prob: Any) -> bool:
        return self.draw([1 - prob, prob]) == 1


Program = Callable[[Dice, Rows, Rows, int, int], Context]


def exact_law(program: Program, pair: ModelPair, num_drafts: int) -> dict[Context, Fraction]:
    """R: the probability of every accepted prefix with its correction token."""

    rows = partial(target_row, pair), partial(draft_row, pair)
    law: dict[Context, Fraction] = {}
    pending: list[list[int]] = [[]]
    while pending:
        script = pending.pop()
        dice = Dice(script)
        output = program(dice, *rows, pair.draft_length, num_drafts)
        law[output] = law.get(output, Fraction(0)) + dice.prob
        for number in range(len(script), len(dice.made)):
            others = [index for index in dice.possible[number] if index != dice.made[number]]
            pending += [[*dice.made[:number], index] for index in others]
    return law


def drafted(dice: Dice, draft: Rows, length: int) -> Context:
    path: Context = ()
    for _ in range(length):
        path += (dice.draw(draft(path)),)
    return path


def excess(p: Row, q: Row) -> Row:
    return [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]


def scaled(row: Row, factor: Any) -> Row:
    return [entry * factor for entry in row]


def normed(row: Row) -> Row:
    return scaled(row, 1 / sum(row)) if sum(row) else row


def mass_or(mass: Row, fallback: Row) -> Row:
    return mass if sum(mass) else fallback


def ratio(p: Row, q: Row, x: int) -> Any:
    return min(Fraction(1), p[x] / q[x]) if q[x] else Fraction(0)


def one_hot(row: Row) -> Row:
    return [Fraction(index == row.index(max(row))) for index in range(len(row))]


def top_but_one(row: Row) -> Row:
    return normed([0 * entry if index == row.index(min(row)) else entry for index, entry in enumerate(row)])


# ------------------------------------------------------------------ one draft, token by token


def token_program(
    accept: Callable[[Row, Row, int], Any] = ratio,
    residual: Callable[[Row, Row], Row] = excess,
    bonus: Callable[[Row], Row] = lambda p: p,
    target_as: Callable[[Row], Row] = lambda p: p,
    draft_as: Callable[[Row], Row] = lambda q: q,
    correction: Callable[[Rows, Rows, Context, int], Row] | None = None,
) -> Program:
    """Token verification with one of its parts replaced."""

    def program(dice: Dice, target: Rows, draft: Rows, length: int, num_drafts: int) -> Context:
        path = drafted(dice, draft, length)
        for depth, token in enumerate(path):
            p, q = target_as(target(path[:depth])), draft_as(draft(path[:depth]))
            if not dice.flip(accept(p, q, token)):
                mass = residual(p, q) if correction is None else correction(target, draft, path, depth)
                return (*path[:depth], dice.draw(mass_or(mass, p)))
        if correction is not None:
            return (*path, dice.draw(correction(target, draft, path, length)))
        return (*path, dice.draw(bonus(target_as(target(path)))))

    return program


def proper(target: Rows, draft: Rows, path: Context, depth: int) -> Row:
    """Token verification's own law of the token after ``depth`` accepted ones."""
    p = target(path[:depth])
    return p if depth == len(path) else excess(p, draft(path[:depth]))


def masked(target: Rows, draft: Rows, path: Context, depth: int) -> Row:
    p = target(path[:depth])
    return p if depth == len(path) else [*p[: path[depth]], Fraction(0), *p[path[depth] + 1 :]]


def draft_bonus(target: Rows, draft: Rows, path: Context, depth: int) -> Row:
    return draft(path[:-1]) if depth == len(path) else proper(target, draft, path, depth)


def shared_uniform(target: Rows, draft: Rows, path: Context, depth: int) -> Row:
    """The interval of u is cut at every value of the distribution function, piece by piece."""
    if depth == len(path):
        return target(path)
    p, q = target(path[:depth]), draft(path[:depth])
    residual = normed(excess(p, q))
    upper = [sum(residual[: index + 1]) for index in range(len(residual))]
    accepted = ratio(p, q, path[depth])
    cuts = sorted({accepted, *(cut for cut in upper if cut > accepted)})
    mass = [Fraction(0)] * len(residual)
    for low, high in pairwise(cuts):
        mass[next(index for index, cut in enumerate(upper) if (low + high) / 2 <= cut)] += high - low
    return mass


def stale(target: Rows, draft: Rows, path: Context, depth: int) -> Row:
    if depth == len(path):
        return target(path)
    before = path[: max(depth - 1, 0)]
    return mass_or(excess(target(before), draft(before)), target(before))


def following(target: Rows, draft: Rows, path: Context, depth: int) -> Row:
    if depth == len(path):
        return target(path)
    after = path[: depth + 1]
    return (
        target(after)
        if len(after) == len(path)
        else mass_or(excess(target(after), draft(after)), target(after))
    )


def floating(p: Row, q: Row, x: int) -> Any:
    """min(1, p/q) where x/0 is infinite and 0/0 no number, hence not accepted."""
    return ratio(p, q, x) if q[x] else Fraction(p[x] > 0)


# --------------------------------------------------------------------- one draft, as a block


def block_verify(
    dice: Dice,
    target: Rows,
    draft: Rows,
    path: Context,
    *,
    cap: bool = True,
    in_acceptance: bool = True,
    in_residual: bool = True,
    first_rejection: bool = False,
    weight_itself: bool = False,
) -> Context:
    """Block verification of a path, each mistake a switch."""
    weights = [Fraction(1)]
    for depth, token in enumerate(path):
        weight = weights[-1] * target(path[:depth])[token] / draft(path[:depth])[token]
        weights.append(min(Fraction(1), weight) if cap else weight)
    accepted = 0
    for depth in range(1, len(path) + 1):
        weight = weights[depth]
        if depth == len(path) or weight_itself:
            chance = min(Fraction(1), weight)
        else:
            p, q = target(path[:depth]), draft(path[:depth])
            mass = sum(excess(scaled(p, weight if in_acceptance else 1), q))
            whole = 1 - weight + mass
            chance = min(Fraction(1), mass / whole) if whole else Fraction(1)
        if dice.flip(chance):
            accepted = depth
        elif first_rejection:
            break
    p = target(path[:accepted])
    if accepted == len(path):
        return (*path, dice.draw(p))
    mass_row = excess(scaled(p, weights[accepted] if in_residual else 1), draft(path[:accepted]))
    return (*path[:accepted], dice.draw(mass_or(mass_row, p)))


def block_program(**mistake: bool) -> Program:
    def program(dice: Dice, target: Rows, draft: Rows, length: int, num_drafts: int) -> Context:
        return block_verify(dice, target, draft, drafted(dice, draft, length), **mistake)

    return program


# ------------------------------------------------------------- several drafts, one is selected


def path_prob(rows: Rows, path: Context) -> Fraction:
    prob = Fraction(1)
    for depth, token in enumerate(path):
        prob *= rows(path[:depth])[token]
    return prob


def ranks(target: Rows, draft: Rows, path: Context, sign: int) -> list[Any]:
    """The lexicographic key of a path: p/q of its tokens, ties by token id times ``sign``."""
    key: list[Any] = []
    for depth, token in enumerate(path):
        p, q = target(path[:depth])[token], draft(path[:depth])[token]
        key.append((p / q if q else Fraction(0), sign * token))
    return key


def skewed(target: Rows, draft: Rows, length: int, num_drafts: int) -> Rows:
    """q^Γ from the order of all leaves: r(P_i) = F_i^K - F_{i-1}^K, made conditional."""
    size = len(draft(()))
    leaves = sorted(product(range(size), repeat=length), key=lambda path: ranks(target, draft, path, 1))
    law, below = {}, Fraction(0)
    for leaf in leaves:
        upper = below + path_prob(draft, leaf)
        law[leaf] = upper**num_drafts - below**num_drafts
        below = upper

    def row(context: Context) -> Row:
        depth = len(context)
        return normed(
            [
                sum((r for leaf, r in law.items() if leaf[: depth + 1] == (*context, x)), Fraction(0))
                for x in range(size)
            ]
        )

    return row


def ties_program(dice: Dice, target: Rows, draft: Rows, length: int, num_drafts: int) -> Context:
    paths = [drafted(dice, draft, length) for _ in range(num_drafts)]
    path = max(paths, key=lambda path: ranks(target, draft, path, -1))
    return block_verify(dice, target, skewed(target, draft, length, num_drafts), path)


def unskewed_program(dice: Dice, target: Rows, draft: Rows, length: int, num_drafts: int) -> Context:
    paths = [drafted(dice, draft, length) for _ in range(num_drafts)]
    return block_verify(dice, target, draft, max(paths, key=lambda path: ranks(target, draft, path, 1)))


def likeliest_program(dice: Dice, target: Rows, draft: Rows, length: int, num_drafts: int) -> Context:
    paths = [drafted(dice, draft, length) for _ in range(num_drafts)]
    return block_verify(dice, target, draft, max(paths, key=lambda path: path_prob(draft, path)))


def longest_program(dice: Dice, target: Rows, draft: Rows, length: int, num_drafts: int) -> Context:
    verify = token_program()
    return max((verify(dice, target, draft, length, 1) for _ in range(num_drafts)), key=len)


# --------------------------------------------------------- several drafts, position by position


def position_program(rule: Callable[[Dice, Row, Row, list[int], int], int]) -> Program:
    """spectr2023 Algorithm 3: the next token by a rule, then the drafts that agree with it."""

    def program(dice: Dice, target: Rows, draft: Rows, length: int, num_drafts: int) -> Context:
        paths = [drafted(dice, draft, length) for _ in range(num_drafts)]
        context: Context = ()
        for depth in range(length):
            tokens = [path[depth] for path in paths]
            token = rule(dice, target(context), draft(context), tokens, num_drafts)
            context, paths = (*context, token), [path for path in paths if path[depth] == token]
            if not paths:
                return context
        return (*context, dice.draw(target(context)))

    return program


def independent_rule(dice: Dice, p: Row, q: Row, tokens: list[int], num_drafts: int) -> int:
    for token in tokens:
        if dice.flip(ratio(p, q, token)):
            return token
    return dice.draw(mass_or(excess(p, q), p))


def kseq(dice: Dice, p: Row, q: Row, tokens: list[int], factor: int, count: int) -> int:
    common = [min(b, a / factor) for a, b in zip(p, q, strict=True)]
    for token in tokens:
        if dice.flip(common[token] / q[token]):
            return token
    beta = sum(common)
    taken = (1 - (1 - beta) ** count) / beta if beta else 0
    return dice.draw(mass_or(excess(p, scaled(common, taken)), p))


def small_factor_rule(dice: Dice, p: Row, q: Row, tokens: list[int], num_drafts: int) -> int:
    return kseq(dice, p, q, tokens, 1, len(tokens))


def all_drafts_rule(dice: Dice, p: Row, q: Row, tokens: list[int], num_drafts: int) -> int:
    return kseq(dice, p, q, tokens, num_drafts, num_drafts)


def without_update_rule(dice: Dice, p: Row, q: Row, tokens: list[int], num_drafts: int) -> int:
    left = p
    for token in tokens:
        if dice.flip(ratio(left, q, token)):
            return token
        left = normed(mass_or(excess(p, q), p))
    return dice.draw(left)


def distinct_rule(dice: Dice, p: Row, q: Row, tokens: list[int], num_drafts: int) -> int:
    left, proposal = p, q
    for token in tokens:
        if dice.flip(ratio(left, proposal, token)):
            return token
        left = normed(excess(left, proposal))
        proposal = normed([*proposal[:token], Fraction(0), *proposal[token + 1 :]])
    return dice.draw(mass_or(left, p))


PROGRAMS: dict[str, Program] = {
    "target_correction": token_program(residual=lambda p, q: p),
    "draft_correction": token_program(residual=lambda p, q: q),
    "absolute_residual": token_program(residual=lambda p, q: [abs(a - b) for a, b in zip(p, q, strict=True)]),
    "rejected_token_masked": token_program(correction=masked),
    "smoothed_residual": token_program(residual=lambda p, q: [m + Fraction(1, 1000) for m in excess(p, q)]),
    "draft_bonus": token_program(correction=draft_bonus),
    "sharpened_bonus": token_program(bonus=lambda p: [a * a for a in p]),
    "shared_uniform": token_program(correction=shared_uniform),
    "stale_correction_row": token_program(correction=stale),
    "next_correction_row": token_program(correction=following),
    "swapped_models": token_program(
        accept=lambda p, q, x: floating(q, p, x), residual=lambda p, q: excess(q, p)
    ),
    "smoothed_ratio": token_program(
        accept=lambda p, q, x: min(Fraction(1), p[x] / (q[x] + Fraction(1, 1000)))
    ),
    "lenient_acceptance": token_program(accept=lambda p, q, x: min(Fraction(1), p[x] / (q[x] / 2))),
    "threshold_acceptance": token_program(accept=lambda p, q, x: Fraction(p[x] >= Fraction(3, 10))),
    "argmax_acceptance": token_program(
        accept=lambda p, q, x: one_hot(p)[x], residual=lambda p, q: one_hot(p), bonus=one_hot
    ),
    "tempered_draft_law": token_program(draft_as=lambda q: normed([b * b for b in q])),
    "truncated_draft_law": token_program(accept=floating, draft_as=top_but_one),
    "truncated_target": token_program(target_as=top_but_one),
    "block_acceptance_without_weight": block_program(in_acceptance=False),
    "block_residual_without_weight": block_program(in_residual=False),
    "block_uncapped_weight": block_program(cap=False),
    "block_first_rejection": block_program(first_rejection=True),
    "block_weight_as_acceptance": block_program(weight_itself=True),
    "greedy_multipath_ties": ties_program,
    "greedy_multipath_unskewed": unskewed_program,
    "likeliest_draft": likeliest_program,
    "longest_accepted": longest_program,
    "independent_acceptance": position_program(independent_rule),
    "small_division_factor": position_program(small_factor_rule),
    "all_drafts_assumed": position_program(all_drafts_rule),
    "recursive_without_update": position_program(without_update_rule),
    "distinct_drafts_assumed": position_program(distinct_rule),
}
"""Every defect by name."""
