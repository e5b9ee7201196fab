"""Settings: one declaration gives the keyword, the option, the check and the record."""

from dataclasses import dataclass

import pytest

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.settings import setting
from spectheory.models import Restriction, SamplingOptions
from spectheory.pairs.drafts import Iid, PrefixTree
from spectheory.simulation import SimulationSettings


def test_the_record_is_what_determines_the_numbers() -> None:
    """Neither where results go nor how the work is spread; of whole texts only where there are some.

    A new setting needs no line here unless it is left out.
    """
    found = SimulationSettings(
        drafts=[4, 1], options=SamplingOptions(top_k=5), restriction=Restriction([1, 2]), jobs=2,
        checkpoint="a", threads=3, progress=print,
    ).record()  # fmt: skip
    expected = {
        "num_drafts": [1, 4], "samples_per_prompt": 16, "seed": 0, "confidence": 0.95, "tolerance": None,
        "draft_length": 8, "restriction": {"token_ids": (1, 2)}, "batch_size": 16,
        "max_prompt_tokens": None, "temperature": 1.0, "top_k": 5, "top_p": None,
    }  # fmt: skip
    left_out = {
        "drafts", "samples", "options", "progress", "against", "threads", "checkpoint", "jobs",
        "max_new_tokens", "common_texts", "width", "gain_width",
    }  # fmt: skip
    assert expected.items() <= found.items()
    assert found.keys().isdisjoint(left_out)
    texts = SimulationSettings(max_new_tokens=9).record()
    assert texts.keys() - found.keys() == {"max_new_tokens", "width", "gain_width"}
    assert texts["samples_per_prompt"] == 1
    assert SimulationSettings(max_new_tokens=9, common_texts=True).record()["common_texts"] is True


def test_drafts_are_numbers_or_a_process() -> None:
    assert SimulationSettings(drafts=[2]) == SimulationSettings(drafts=2)
    assert SimulationSettings(drafts=Iid(2)).record() == SimulationSettings(drafts=2).record()
    found = SimulationSettings(drafts=PrefixTree((2, 3))).record()
    assert (found["num_drafts"], found["draft_process"]) == (6, "prefix_tree:2,3")
    for wrong in (0, True, "2", None, [], [1, 1], [0, 1], 1.5):
        with pytest.raises(InvalidInputError, match="drafts must be"):
            SimulationSettings(drafts=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["common_texts", "gain_width", "width"])
def test_settings_of_whole_texts_need_whole_texts(name: str) -> None:
    SimulationSettings(max_new_tokens=4, **{name: 1})
    with pytest.raises(InvalidInputError, match=f"{name} was asked for without whole texts"):
        SimulationSettings(**{name: 1})


@dataclass(frozen=True, kw_only=True)
class More(SimulationSettings):
    """A setting more.

    Attributes:
        patience: How long to wait, in
            ``seconds``.
    """

    patience: int = setting(3)


def test_a_new_setting_is_one_declaration() -> None:
    assert More(patience=5).record() == SimulationSettings().record() | {"patience": 5}
