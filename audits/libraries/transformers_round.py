"""transformers: the text that generate() samples with an assistant, as a round."""

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from audits.libraries.transformers import SUBJECTS as OF_THE_LIBRARY
from audits.loading.library_code import Code
from spectheory.auditing.subjects.drafting_rounds import Model
from spectheory.auditing.subjects.signatures import ROUND

STAND_INS = (
    "the models: rows that are looked up behind the tokens of the library's caches, and a first token",
    "the round: a text of L+1 tokens that generate() samples, with 2 assistant tokens at a time",
)


def assisted_generation(code: Code) -> Callable[..., Any]:
    """A round: the text that ``generate`` of the installed library samples with an assistant.

    Inside are all rounds of the text, with the caches of both models.
    """
    import transformers

    if sha256(Path(transformers.generation.utils.__file__).read_bytes()).hexdigest() != code.sha256:
        raise code.refused("is not that of the installed release, and only that one can generate")

    def play(text: Sequence[int], target: Model, draft: Model, draft_length: int, generator: Any) -> Any:
        """Behind a first token; the two models have caches of their tokens."""
        size = len(target(text))
        model, assistant = (_looked_up()(row, size) for row in (target, draft))
        assistant.generation_config.update(
            num_assistant_tokens=2, num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0
        )
        prompt = torch.tensor([[0, *text]])
        found = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            assistant_model=assistant,
            do_sample=True,
            top_k=0,
            max_new_tokens=draft_length + 1,
            pad_token_id=size,
        )
        tokens = found[0, prompt.shape[1] :].tolist()
        # All tokens but the last are judged as drafts from the target's rows.
        rows = [target([*text, *tokens[:place]]) for place in range(draft_length)]
        return tokens[:-1], torch.stack(rows), tokens

    return play


@cache
def _looked_up() -> Callable[[Model, int], Any]:
    """Makes a model of the library that caches tokens, and looks up its logits behind them."""
    from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutputWithPast

    class LookedUp(PreTrainedModel, GenerationMixin):
        config_class = PretrainedConfig
        row: Any

        def forward(self, input_ids: torch.Tensor, **given: Any) -> Any:
            seen = input_ids[:, None, :, None]
            caches = {name: given[name] for name in ("cache", "past_key_values") if name in given}
            for kept in caches.values():  # one at most, by its name since 5.24 or before
                if kept is not None:
                    seen, _ = kept.update(seen, seen, 0)
            tokens = seen[0, 0, :, 0].tolist()
            places = range(len(tokens) - input_ids.shape[1], len(tokens))
            logits = torch.stack([self.row(tokens[1 : place + 1]) for place in places]).log()[None]
            return CausalLMOutputWithPast(logits=logits, **caches)

    def make(row: Model, size: int) -> Any:
        shape = {"num_hidden_layers": 1, "hidden_size": 1, "num_attention_heads": 1, "vocab_size": size}
        model = LookedUp(PretrainedConfig.from_dict(shape)).eval()
        model.row, model.place = row, torch.nn.Parameter(torch.zeros(1))  # the device is that of a parameter
        return model

    return make


SUBJECTS = {
    "transformers-round": OF_THE_LIBRARY["transformers"]._replace(
        adapter=assisted_generation, signature=ROUND, in_all=False, settings={"stand_ins": STAND_INS}
    )
}
