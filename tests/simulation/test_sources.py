"""Where drafted paths come from: in batches."""

from montecarlo_support import PROMPTS
from spectheory.models import LanguageModelPair
from spectheory.pairs.drafts import Iid
from spectheory.simulation.settings import SimulationSettings
from spectheory.simulation.sources import LanguageModelSource


def source(models: LanguageModelPair) -> LanguageModelSource:
    settings = SimulationSettings(draft_length=3, batch_size=2)
    return LanguageModelSource(models, PROMPTS[:3], Iid(2), settings)


def test_the_last_batch_has_what_is_left(models: LanguageModelPair) -> None:
    found = source(models)
    assert found.strata_per_batch == [2, 1]
    for batch, strata in enumerate(found.strata_per_batch):
        assert len(found.open_batch(batch)(found.generator(0), 1).paths) == strata
