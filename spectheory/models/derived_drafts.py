"""Draft models made from a language model without training.

Each draft is a causal language model in the form of transformers and shares the weights of its base model.
Let p(· | x) be the law of the base model after a text x.  The drafts are:

- ``first_layers``: the base model without its later layers.
- ``last_tokens``: p(· | the last w tokens of x), which are read as a text of w tokens.
- ``prompt_lookup``: the last tokens of x are looked up earlier in x.  The token that followed them has all
  mass, or each token that followed them has mass in proportion to its number of occurrences.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.extras import installed
from spectheory.foundation.validation import check_count


def first_layers(model: Any, count: int) -> Any:
    """Build the model without its later layers, as in self-speculation with an early exit.

    The final norm and the output layer are applied to the output of the last layer kept.

    Args:
        model: a causal language model of transformers, with its layers in one list.
        count: number of layers to keep, fewer than the model has.

    Raises:
        InvalidInputError: ``count`` is out of range, or the model does not keep its layers in one list.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> sizes = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
        >>> model = LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=2)).eval()
        >>> len(first_layers(model, 1).model.layers), len(model.model.layers)
        (1, 2)
    """
    total = model.config.get_text_config().num_hidden_layers
    found = shared_copy(model)
    keep_layers(found.config, count)
    found.config.derived = [f"{count}-layers"]
    lists = [part for part in found.base_model.children() if isinstance(part, torch.nn.ModuleList)]
    lists = [part for part in lists if len(part) == total]
    if len(lists) != 1:
        raise InvalidInputError(
            f"{type(model).__name__} does not keep its {total} layers in one list; draft with another model"
        )
    del lists[0][count:]
    return found


def last_tokens(model: Any, width: int) -> Any:
    """Build a draft that runs the model on only the last tokens of every text.

    Args:
        model: a causal language model of transformers.
        width: w, the number of tokens read.  Shorter texts are read whole.

    Raises:
        InvalidInputError: ``width`` is not an integer of at least 1.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> sizes = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
        >>> model = LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=2)).eval()
        >>> one, other = (last_tokens(model, 2)(torch.tensor([[first, 5, 6]])) for first in (1, 2))
        >>> torch.equal(one.logits[:, -1], other.logits[:, -1])
        True
    """
    return _LastTokens(model, check_count("width", width))


def prompt_lookup(model: Any, longest: int, every_place: bool = False) -> Any:
    """Build a prompt look-up draft: it repeats what followed an earlier occurrence of the last tokens.

    We search the text for earlier occurrences of its last n tokens, for n = ``longest`` .. 1, and stop at the
    first n with one.  The token after the latest occurrence has probability 1.  If the last token has no
    earlier occurrence, it has probability 1 itself.

    Args:
        model: gives the vocabulary, device and dtype.  It is never called.
        longest: the largest n.
        every_place: use all occurrences, not only the latest.  The probability of a token is then in
            proportion to the number of occurrences that it follows, so that a ``ConfidenceTree`` of this
            draft is a list of n-grams.

    Raises:
        InvalidInputError: ``longest`` is not an integer of at least 1.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> sizes = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
        >>> model = LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=2)).eval()
        >>> prompt_lookup(model, 2)(torch.tensor([[6, 1, 4, 2, 1, 6, 1]])).logits[0, -1].argmax()
        tensor(4)
    """
    return _PromptLookup(model, check_count("longest", longest), every_place)


def derived_config(config: Any, part: str) -> Any:
    """Copy a configuration and write the part of the draft name that identifies its runs into it."""
    found = copy.deepcopy(config)
    found.derived = [part]
    return found


def keep_layers(config: Any, count: int) -> None:
    """Change a configuration in place to the first ``count`` layers.  All parts of a model share it."""
    text = config.get_text_config()
    total = text.num_hidden_layers
    if not 1 <= check_count("layers", count) < total:
        raise InvalidInputError(f"the model has {total} layers, got {count} for its draft; keep fewer")
    text.num_hidden_layers = count
    if getattr(text, "layer_types", None) is not None:
        text.layer_types = text.layer_types[:count]


def shared_copy(model: Any) -> Any:
    """Copy a model but share its weights, so that layers of the copy can be removed or hooked."""
    tensors = (*model.parameters(), *model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})


class _Rereading(torch.nn.Module):
    """A draft that keeps no cache between calls, so it reads the whole text at each call."""

    reads_anew = True

    def __init__(self, model: Any, part: str) -> None:
        super().__init__()
        self.config = derived_config(model.config, part)
        self.training = model.training

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _output(self, logits: Tensor) -> Any:
        with installed():
            from transformers.modeling_outputs import CausalLMOutputWithPast
        return CausalLMOutputWithPast(logits=logits)


class _LastTokens(_Rereading):
    def __init__(self, model: Any, width: int) -> None:
        super().__init__(model, f"last-{width}")
        self.model, self.width = model, width

    def forward(self, input_ids: Tensor, logits_to_keep: int = 0, use_cache: bool = False) -> Any:
        """Compute logits of the last ``logits_to_keep`` positions, or of all.  [N, n] -> [N, positions, V]"""
        length = input_ids.shape[1]
        first = length - (logits_to_keep or length)  # position whose logits are wanted
        parts = []
        whole = min(length, self.width)
        if first < whole:  # texts of at most w tokens are read from their beginning
            parts.append(self.model(input_ids=input_ids[:, :whole], use_cache=False).logits[:, first:])
        if length > whole:
            windows = input_ids.unfold(1, self.width, 1)[:, max(first + 1 - self.width, 1) :]
            # Paths with the same last w tokens need one row only.
            distinct, places = torch.unique(windows.flatten(0, 1), dim=0, return_inverse=True)
            logits = self.model(input_ids=distinct, use_cache=False).logits[:, -1]
            parts.append(logits[places].unflatten(0, windows.shape[:2]))
        return self._output(torch.cat(parts, dim=1))


class _PromptLookup(_Rereading):
    def __init__(self, model: Any, longest: int, every_place: bool) -> None:
        super().__init__(model, f"{'ngram' if every_place else 'lookup'}-{longest}")
        like = next(model.parameters())
        self.place = torch.nn.Parameter(torch.zeros(1, dtype=like.dtype, device=like.device), False)
        self.longest, self.every_place = longest, every_place

    def forward(self, input_ids: Tensor, logits_to_keep: int = 0, use_cache: bool = False) -> Any:
        """Compute logits of the last ``logits_to_keep`` positions, or of all.  [N, n] -> [N, positions, V]"""
        length = input_ids.shape[1]
        first = length - (logits_to_keep or length)
        probs = [self._next(input_ids[:, : end + 1]) for end in range(first, length)]
        return self._output(torch.stack(probs, dim=1).log())

    def _next(self, text: Tensor) -> Tensor:
        """Compute the law of the next token of each text.  [N, n] -> [N, V]"""
        earlier = text.shape[1] - 1
        nothing = self.place.new_zeros((len(text), self.config.get_text_config().vocab_size))
        if earlier == 0:
            return nothing.scatter(1, text, 1.0)
        # agree: how many tokens up to each earlier position equal the last tokens, at most ``longest``.
        agree = torch.zeros_like(text[:, :-1])
        alike = torch.ones_like(agree, dtype=torch.bool)
        for back in range(min(self.longest, earlier)):
            same = torch.zeros_like(alike)
            same[:, back:] = text[:, : earlier - back] == text[:, -1 - back, None]
            alike = alike & same
            agree = agree + alike
        if not self.every_place:  # the latest occurrence only: ties go to the later position
            agree = agree * earlier + torch.arange(earlier, device=text.device) * (agree > 0)
        best = agree.amax(dim=1, keepdim=True)
        places = ((agree == best) & (best > 0)).to(nothing.dtype)
        found = nothing.scatter_add(1, text[:, 1:], places / places.sum(dim=1, keepdim=True).clamp(min=1))
        return torch.where(best > 0, found, nothing.scatter(1, text[:, -1:], 1.0))
