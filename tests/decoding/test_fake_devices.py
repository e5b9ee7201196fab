"""The loop on fake tensors of an accelerator: it waits for the device once per iteration.

Fake tensors have shapes and devices and no entries, so that reading a number raises.  The one place where the
loop looks is told what it sees, and counts.  The program runs in a process of its own, because a device
that is registered stays.
"""

import json
from typing import Any

import pytest

from fresh_interpreter import run_forked

NAMES = ("spectr", "greedy_block")
PROGRAM = """
import json
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from transformers import LlamaConfig
from transformers.modeling_outputs import CausalLMOutputWithPast
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.decoding import Stopping, decoding_iterations
from spectheory.pairs.drafts import Iid
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import prefill_texts
from spectheory.models.growing_texts import Texts
from spectheory.verification.resolve import find_verifier

_setup_privateuseone_for_python_backend("fakegpu")
V, L = 600, 3


class Model:
    # one layer of attention over what the cache holds; transformers' own models are not made on fake devices
    config, dtype = LlamaConfig(vocab_size=V, num_hidden_layers=1), torch.float32

    def __init__(self):
        self.embedding = torch.empty((V, 4), device="fakegpu")

    def forward(self, input_ids, cache, use_cache, attention_mask=0, position_ids=None):
        positions = 0 if position_ids is None else position_ids[:, None, :, None]
        read = self.embedding[input_ids][:, None] + positions
        keys, values = cache.update(read, read, 0)
        seen = torch.softmax(read @ keys.mT + attention_mask, dim=-1) @ values
        return CausalLMOutputWithPast(logits=seen[:, 0] @ self.embedding.T)

    __call__ = forward


class Reads(Token):
    def outcome(self, paths, target_rows, draft_rows):
        return super().outcome(paths, target_rows, draft_rows * float(target_rows.sum()))


class Looks(Token):
    def outcome(self, paths, target_rows, draft_rows):
        paths.tolist()
        return super().outcome(paths, target_rows, draft_rows)


def rejected(rows):
    # of every other text one drafted token is accepted: texts end in different calls, and none is unsound
    looks.append(list(rows.shape))
    return [[number & 1] + [0] * (rows.shape[1] - 1) for number in range(rows.shape[0])]


def uploaded(data, device="cpu", dtype=None):
    # numbers that the host knows: sending them waits for nothing, and these devices cannot do it
    return torch.empty(len(data), dtype=dtype, device=device)


looks, FakeTensor.tolist, torch.tensor = [], rejected, uploaded


def looked(verifier):
    num_drafts, calls = (1 if verifier.single_path else 2), 0
    looks.clear()
    with FakeTensorMode():
        pair = LanguageModelPair(
            Model(), Model(), (), None, torch.device("fakegpu"), torch.float32, V
        )
        pair.__dict__["cached"] = (True, True)
        ids, starts = (torch.empty(s, dtype=torch.int64, device="fakegpu") for s in ((4, 5), (4,)))
        process = Iid(num_drafts)
        try:
            for call in decoding_iterations(
                prefill_texts(pair, Texts.padded(ids, starts)), verifier.bind(process), process, L,
                Stopping(4), None, SamplingOptions(top_p=0.9),
            ):
                calls += 1
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return [calls, len(looks), [shape[0] for shape in looks]]


verifiers = [*map(find_verifier, %r), Reads(), Looks()]
print(json.dumps([looked(verifier) for verifier in verifiers]))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Calls, looks and texts of each call, by verifier, or its error."""
    done = run_forked(PROGRAM % (NAMES,))
    assert done.returncode == 0, done.stderr
    return dict(zip((*NAMES, "reads", "looks"), json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_loop_waits_once_per_iteration(name: str, found: dict[str, Any]) -> None:
    """Four texts of four tokens; every other one gets two in a call, and is dropped once it is finished."""
    assert found[name] == [4, 4, [4, 4, 2, 1]]


def test_partner_a_look_too_many_is_seen(found: dict[str, Any]) -> None:
    """A verifier that reads a number, and one that looks where looking is told what it sees."""
    assert str(found["reads"]).startswith("DataDependentOutputException")
    calls, looks, _ = found["looks"]
    assert looks == 2 * calls
