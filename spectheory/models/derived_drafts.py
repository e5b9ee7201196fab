"""Drafts made of a language model without training.

Each is a causal language model in the form of transformers, with a stated law, and shares the weights of the
model that it is made of.  p(· | x) is the law of that model after a text x of n tokens.

- ``first_layers``: the final norm and the output layer on what the first layers give.
- ``last_tokens``: p(· | the last w tokens of x), which are read as a text of w tokens.
- ``prompt_lookup``: all mass on the token that followed the last tokens of x where they stood before, or all
  tokens that followed them, by how often they did.
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
    """The model without its later layers, as in self-speculation with an early exit.

    Args:
        model: a causal language model of transformers, with its layers in one list.
        count: how many layers are kept, below their number.

    Raises:
        InvalidInputError: the count is out of range, or the layers are not found.

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
    """The model on the last tokens of every text, as a draft with a short cache.

    Args:
        model: a causal language model of transformers.
        width: w, how many tokens are read; shorter texts are read whole.

    Raises:
        InvalidInputError: the width is not a whole number of at least 1.

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
    """Prompt look-up: the draft repeats what followed the last tokens of the text.

    The last n tokens of the text are searched for in the text before, for n = ``longest`` .. 1.  Of the first
    n that is found the latest place counts, and the token behind it has probability 1.  Where not even the
    last token stood before, it is repeated.

    Args:
        model: gives vocabulary, device and number type; it is never called.
        longest: the most tokens that are compared.
        every_place: all places of that n count.  A token has a probability in proportion to the number of
            places that it stands behind, so that a ``ConfidenceTree`` of this draft is a list of n-grams.

    Raises:
        InvalidInputError: ``longest`` is not a whole number of at least 1.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> sizes = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
        >>> model = LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=2)).eval()
        >>> prompt_lookup(model, 2)(torch.tensor([[6, 1, 4, 2, 1, 6, 1]])).logits[0, -1].argmax()
        tensor(4)
    """
    return _PromptLookup(model, check_count("longest", longest), every_place)


def derived_config(config: Any, part: str) -> Any:
    """The configuration with the name of a draft that is made of its model, for the identity of runs."""
    found = copy.deepcopy(config)
    found.derived = [part]
    return found


def keep_layers(config: Any, count: int) -> None:
    """Change a configuration, which all parts of a model share, to its first layers."""
    text = config.get_text_config()
    total = text.num_hidden_layers
    if not 1 <= check_count("layers", count) < total:
        raise InvalidInputError(f"the model has {total} layers, got {count} for its draft; keep fewer")
    text.num_hidden_layers = count
    if getattr(text, "layer_types", None) is not None:
        text.layer_types = text.layer_types[:count]


def shared_copy(model: Any) -> Any:
    """A copy of a model with the same weights in memory, whose parts can be left out or hooked."""
    tensors = (*model.parameters(), *model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})


class _Rereading(torch.nn.Module):
    """A draft that keeps nothing between calls."""

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
        """[N, n] -> logits of the last positions, [N, logits_to_keep, V], or of all."""
        length = input_ids.shape[1]
        first = length - (logits_to_keep or length)  # of the positions whose logits are wanted
        parts = []
        whole = min(length, self.width)
        if first < whole:  # texts of at most w tokens are read from their beginning
            parts.append(self.model(input_ids=input_ids[:, :whole], use_cache=False).logits[:, first:])
        if length > whole:
            windows = input_ids.unfold(1, self.width, 1)[:, max(first + 1 - self.width, 1) :]
            # K paths that have not parted yet have the same last tokens.
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
        """[N, n] -> logits of the last positions, [N, logits_to_keep, V], or of all."""
        length = input_ids.shape[1]
        first = length - (logits_to_keep or length)
        probs = [self._next(input_ids[:, : end + 1]) for end in range(first, length)]
        return self._output(torch.stack(probs, dim=1).log())

    def _next(self, text: Tensor) -> Tensor:
        """[N, n] -> [N, V]"""
        earlier = text.shape[1] - 1
        nothing = self.place.new_zeros((len(text), self.config.get_text_config().vocab_size))
        if earlier == 0:
            return nothing.scatter(1, text, 1.0)
        # How many tokens before and at every earlier place agree with the last ones, up to the longest.
        agree = torch.zeros_like(text[:, :-1])
        alike = torch.ones_like(agree, dtype=torch.bool)
        for back in range(min(self.longest, earlier)):
            same = torch.zeros_like(alike)
            same[:, back:] = text[:, : earlier - back] == text[:, -1 - back, None]
            alike = alike & same
            agree = agree + alike
        if not self.every_place:  # the latest place alone
            agree = agree * earlier + torch.arange(earlier, device=text.device) * (agree > 0)
        best = agree.amax(dim=1, keepdim=True)
        places = ((agree == best) & (best > 0)).to(nothing.dtype)
        found = nothing.scatter_add(1, text[:, 1:], places / places.sum(dim=1, keepdim=True).clamp(min=1))
        return torch.where(best > 0, found, nothing.scatter(1, text[:, -1:], 1.0))
