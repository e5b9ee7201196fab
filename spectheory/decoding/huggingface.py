"""custom_generate(): run the decoding loop inside ``model.generate`` of transformers."""

from typing import Any

import torch
from torch import Tensor
from transformers.generation import (
    EosTokenCriteria,
    GenerateDecoderOnlyOutput,
    GenerationConfig,
    LogitsProcessorList,
    MaxLengthCriteria,
    StoppingCriteriaList,
)

from spectheory.decoding.loop import decoding_iterations, refuse_wrong_laws
from spectheory.decoding.processors import LogitsProcessors
from spectheory.decoding.stopping import Stopping
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_draft_length
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import prefill_texts
from spectheory.models.growing_texts import Texts
from spectheory.models.language_model import draft_process_of_models
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.resolve import find_verifier

WITH_A_STATE = ("UnbatchedClassifierFreeGuidanceLogitsProcessor", "SynthIDTextWatermarkLogitsProcessor")
"""Logits processors of transformers that keep a state between calls."""
RECORDS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


def custom_generate(
    model: Any,
    input_ids: Tensor,
    *,
    draft_model: Any,
    verifier: str | Any = "block",
    drafts: int | DraftProcess = 1,
    draft_length: int = 5,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    **model_kwargs: Any,
) -> Tensor | GenerateDecoderOnlyOutput:
    """Decode with any verifier; pass this function to ``generate`` of transformers as ``custom_generate``.

        model.generate(**inputs, custom_generate=custom_generate, draft_model=draft, verifier="block")

    Other arguments of ``generate`` (sampling or greedy, temperature, processors, lengths, stops) keep their
    meaning.  They apply to both models.  Random numbers depend on ``torch.manual_seed``.

    Args:
        model: the target.
        input_ids: [B, W] prompts, padded on the left.
        draft_model: a model with the same tokens and on the same device.
        verifier: a name, ``"package.module:attribute"``, or any object with ``outcome``.
        drafts: K paths drafted i.i.d., or a draft process.
        draft_length: L.
        logits_processor, stopping_criteria, generation_config, model_kwargs: as ``generate`` prepares them.

    Returns:
        [B, W + new tokens] token ids, padded on the right.  If ``return_dict_in_generate`` is set, an object
        with these as ``sequences``.

    Raises:
        InvalidInputError: an argument is out of range; the arguments ask for beams, records of scores or a
            processor with a state; or a prompt has padding inside.
        InvalidOutcomeError: a row that we sampled from a user's verifier is not a law.
    """
    found, draft_length = find_verifier(verifier), check_draft_length("draft_length", draft_length)
    _refuse_what_is_not_done(generation_config, logits_processor)
    pair = LanguageModelPair.of(model, draft_model)
    process = draft_process_of_models(drafts)
    bound = found.bind(process)
    texts = _texts(input_ids, model_kwargs.get("attention_mask"), pair.device)
    stopping = _stopping(stopping_criteria, input_ids)
    pair.check_length(input_ids.shape[1], draft_length, stopping.max_new_tokens)
    written: list[list[int]] = [[] for _ in input_ids]
    seed = int(torch.empty((), dtype=torch.int64).random_())
    for call in decoding_iterations(
        prefill_texts(pair, texts),
        bound,
        process,
        draft_length,
        stopping,
        pair.generator(seed),
        # When sampling, ``generate`` passes temperature, top-k and top-p as logits processors.
        SamplingOptions(temperature=1 if generation_config.do_sample else 0),
        LogitsProcessors(logits_processor, len(input_ids)) if logits_processor else None,
    ):
        refuse_wrong_laws(bound, call)
        for number, tokens in zip(call.numbers, call.tokens, strict=True):
            written[number].extend(tokens)
    padding = generation_config.pad_token_id if generation_config.pad_token_id is not None else 0
    width = max(map(len, written))
    rows = torch.tensor([tokens + [padding] * (width - len(tokens)) for tokens in written])
    sequences: Any = torch.cat([input_ids, rows.to(input_ids.device)], dim=1)
    if generation_config.return_dict_in_generate:
        return GenerateDecoderOnlyOutput(sequences=sequences)
    return sequences


def _refuse_what_is_not_done(config: GenerationConfig, processors: LogitsProcessorList) -> None:
    for processor in processors:
        if type(processor).__name__ in WITH_A_STATE:
            raise InvalidInputError(
                f"{type(processor).__name__} keeps a state from call to call, which a loop that takes back "
                "drafted tokens cannot follow; leave it out"
            )
    if (config.num_beams or 1) > 1:
        raise InvalidInputError(f"num_beams must be 1, got {config.num_beams}; a verifier samples")
    asked = [name for name in RECORDS if getattr(config, name, False)]
    if asked:
        raise InvalidInputError(f"{asked[0]} is not recorded by a speculative decoding loop; leave it out")


def _texts(input_ids: Tensor, attention_mask: Tensor | None, device: torch.device) -> Texts:
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    starts = (mask == 0).sum(dim=1)
    columns = torch.arange(input_ids.shape[1], device=mask.device)
    if not torch.equal(mask != 0, columns >= starts[:, None]) or bool((starts == len(columns)).any()):
        raise InvalidInputError("prompts must be padded at the left, with at least one token each")
    return Texts.padded(input_ids.to(device), starts.to(device))


def _stopping(criteria: StoppingCriteriaList, prompts: Tensor) -> Stopping:
    """Convert stopping criteria.  Length and end-of-sequence criteria then need no call per token."""
    lengths = [
        entry.max_length - prompts.shape[1] for entry in criteria if isinstance(entry, MaxLengthCriteria)
    ]
    ends = {
        token
        for entry in criteria
        if isinstance(entry, EosTokenCriteria)
        for token in entry.eos_token_id.tolist()
    }
    others = [entry for entry in criteria if not isinstance(entry, (MaxLengthCriteria, EosTokenCriteria))]

    def criterion(number: int, tokens: list[int]) -> bool:
        new = torch.tensor(tokens, device=prompts.device)
        text = torch.cat([prompts[number], new])[None]
        return any(bool(torch.as_tensor(entry(text, None)).all()) for entry in others)

    return Stopping(min(lengths), ends, criterion=criterion if others else None)
