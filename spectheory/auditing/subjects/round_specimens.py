"""Rounds with one mistake between drafter and verifier, as they have shipped, and each mended.

Given independent drafts, every one of these verifiers is right.  The mistake is in what drafter and verifier
share, or in the rows that one of them takes for the other's.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from spectheory.auditing.subjects.signatures import Models, Round

Rule = Callable[[torch.Tensor], torch.Tensor]


class RoundSpecimen(NamedTuple):
    """A round, and the same one mended.

    Attributes:
        wrong, mended: rounds, for ``audit(round, signature="round")``.
        mistake: in words.
    """

    wrong: Callable[[Models, torch.Generator], Round]
    mended: Callable[[Models, torch.Generator], Round]
    mistake: str


def token_round(
    drawn: Rule = torch.clone,
    reported: Rule = torch.clone,
    *,
    shares_noise: bool = False,
    is_off_by_one: bool = False,
) -> Callable[[Models, torch.Generator], Round]:
    """Draft with exponential races and verify token by token.

    Args:
        drawn: the draft's row -> the row that is drafted from.
        reported: the draft's row -> the row that the verifier takes for it.
        shares_noise: whether a residual races with the numbers that the draft of its position raced with.
        is_off_by_one: whether the verifier reads the row of the position before, from the second on.
    """

    def one_round(models: Models, generator: torch.Generator) -> Round:
        drafted: list[int] = []
        rows, noise = [], []
        for _ in range(models.draft_length):
            row = models.draft([*models.context, *drafted])
            noise.append(torch.empty_like(row).exponential_(generator=generator))
            drafted.append(int((drawn(row) / noise[-1]).argmax()))
            rows.append(reported(row))
        if is_off_by_one:
            rows = [rows[0], *rows[:-1]]
        for place, token in enumerate(drafted):
            target = models.target([*models.context, *drafted[:place]])
            ratio = target[token] / rows[place][token]
            if not bool(torch.rand((), generator=generator) < ratio):
                clocks = (
                    noise[place]
                    if shares_noise
                    else torch.empty_like(target).exponential_(generator=generator)
                )
                residual = (target - rows[place]).clamp(min=0)
                return Round(
                    drafted, torch.stack(rows), [*drafted[:place], int((residual / clocks).argmax())]
                )
        last = models.target([*models.context, *drafted])
        bonus = int(torch.multinomial(last, 1, generator=generator))
        return Round(drafted, torch.stack(rows), [*drafted, bonus])

    return one_round


def _colder(row: torch.Tensor) -> torch.Tensor:
    return row.square() / row.square().sum()


def _filtered(row: torch.Tensor) -> torch.Tensor:
    kept = torch.where(row < row.max() / 4, 0.0, row)
    return kept / kept.sum()


def _bf16(row: torch.Tensor) -> torch.Tensor:
    rounded = row.bfloat16().float()
    return rounded / rounded.sum()


ROUND_SPECIMENS: Mapping[str, RoundSpecimen] = {
    "shared noise": RoundSpecimen(
        token_round(shares_noise=True), token_round(), "draft and residual race with the same numbers"
    ),
    "another temperature": RoundSpecimen(
        token_round(_colder), token_round(_colder, _colder), "the draft is colder than its row"
    ),
    "filter on one side": RoundSpecimen(
        token_round(_filtered),
        token_round(_filtered, _filtered),
        "rare tokens are not drafted, and stay in the row",
    ),
    "bf16 draft": RoundSpecimen(
        token_round(_bf16), token_round(_bf16, _bf16), "the draft is drawn in bfloat16, its row has float32"
    ),
    "off by one": RoundSpecimen(
        token_round(is_off_by_one=True), token_round(), "the verifier reads the draft's row before"
    ),
}
"""Name -> specimen."""
