"""Where drafted paths come from: batches, and the restriction of every prompt in them."""

import torch

from montecarlo_support import PROMPTS
from spectheory.models import LanguageModelPair, Restriction
from spectheory.pairs.drafts import Iid
from spectheory.simulation.settings import SimulationSettings
from spectheory.simulation.sources import LanguageModelSource

SETS = ([3, 5], [7, 9], [11, 13])


def source(models: LanguageModelPair, restriction: Restriction | None = None) -> LanguageModelSource:
    settings = SimulationSettings(draft_length=3, restriction=restriction, batch_size=2)
    return LanguageModelSource(models, PROMPTS[:3], Iid(2), settings)


def test_the_last_batch_has_what_is_left(models: LanguageModelPair) -> None:
    found = source(models)
    assert found.strata_per_batch == [2, 1]
    for batch, strata in enumerate(found.strata_per_batch):
        assert len(found.open_batch(batch)(found.generator(0), 1).paths) == strata


def test_every_prompt_has_its_own_tokens(models: LanguageModelPair) -> None:
    whole, restricted = source(models), source(models, Restriction.fixed(*SETS))
    for batch, sets in enumerate((SETS[:2], SETS[2:])):
        rows = [found.open_batch(batch)(found.generator(0), 1).target_rows for found in (whole, restricted)]
        for row, kept, tokens in zip(*(found[:, 0, 0] for found in rows), sets, strict=True):
            assert torch.allclose(kept, row[tokens] / row[tokens].sum())
