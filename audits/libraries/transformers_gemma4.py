"""transformers' candidate generator for assistants at one position, with the verification of its drafts."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from audits.forms.drafted import Generator
from audits.libraries.transformers import SUBJECTS as OF_THE_LIBRARY
from audits.loading.reached_code import Function
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import NOT_LOSSLESS
from spectheory.pairs.pair import ModelPair

GENERATOR = Function(
    "SinglePositionMultiTokenCandidateGenerator",
    ("transformers.generation.candidate_generator",),
    frozenset(
        {
            "input_ids", "assistant_model", "target_model_input_embeddings", "generation_config",
            "model_kwargs",
        }
    ),
)  # fmt: skip


def gemma4_assistant(make: Callable[..., Any], pair: ModelPair) -> Generator:
    """The candidate generator of transformers for assistants at one position, with a stand-in assistant.

    The stand-in has the pair's draft rows: its hidden state is the depth and the number of a context.

    Args:
        make: makes a generator of a release from the arguments by name that it has.
        pair: the models.
    """
    config = SimpleNamespace(num_assistant_tokens=pair.draft_length, max_length=1_000, do_sample=True)

    class Gemma4AssistantStandIn:
        generation_config = config
        device = torch.device("cpu")

        def __call__(self, inputs_embeds: torch.Tensor, **options: Any) -> Any:
            token, depth, number = (int(value) for value in inputs_embeds[0, 0])
            number = number * pair.vocab_size + token if depth else 0
            row = torch.tensor(pair.draft[depth][number].astype(float), dtype=torch.float32).log()
            hidden = torch.tensor([[[depth + 1.0, float(number)]]])
            return SimpleNamespace(logits=row[None, None], last_hidden_state=hidden)

    def embeddings(ids: torch.Tensor) -> torch.Tensor:
        return ids[..., None].float()

    def generate() -> tuple[list[int], torch.Tensor]:
        prompt = torch.zeros((1, 1), dtype=torch.long)
        state = SimpleNamespace(hidden_states=[torch.zeros((1, 1, 2))], shared_kv_states={})
        try:
            generator = make(
                input_ids=prompt,
                assistant_model=Gemma4AssistantStandIn(),
                target_model_input_embeddings=embeddings,
                generation_config=config,
                model_kwargs={},
            )
            ids, logits = generator.get_candidates(prompt, {}, state, False, 0)
        except (AttributeError, TypeError) as error:
            raise InvalidInputError(
                f"this release's draft generator asks more of the stand-in assistant: {error}"
            ) from error
        return ids[0, 1:].tolist(), logits[0]

    return generate


SUBJECTS = {
    "transformers-gemma4": OF_THE_LIBRARY["transformers"]._replace(
        verdict=NOT_LOSSLESS,
        mistake=None,
        drafter=GENERATOR,
        generator=gemma4_assistant,
        settings={"stand_ins": ("the assistant and its embeddings: the draft rows of the pair",)},
    )
}
