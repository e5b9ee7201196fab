"""Every verifier on fake tensors of an accelerator: one device, nothing that waits for it, fixed shapes.

Fake tensors have shapes and devices and no entries.  Mixing devices, reading a number (``.item()``) and
shapes that depend on entries raise.  The program runs in a process of its own, because a device that is
registered stays.
"""

import json

import pytest

from fresh_interpreter import run_forked
from spectheory.verification.algorithms import verifiers

ON_THE_CPU = ("otm", "conditional_transport", "optimal_multipath", "kseq")
"""Plans are computed on the CPU; pairs are enumerated there; K-SEQ at one position is in ``spectr``."""
PROGRAM = """
import json
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.pairs.drafts import Iid, WithoutReplacement

_setup_privateuseone_for_python_backend("fakegpu")
V, L, B = 3_000, 2, 3  # long enough to be drawn from by blocks


class Reads(Token):
    def residual(self, weight, rows):
        return super().residual(weight, rows) * float(rows.target_row.sum())


class Mixes(Token):
    def residual(self, weight, rows):
        return super().residual(weight, rows) * torch.ones(V)


class Shapes(Token):
    def acceptance(self, weight, residual_mass):
        return super().acceptance(weight, residual_mass)[torch.nonzero(weight[..., 0])[:, 0]]


def devices(verifier, num_drafts):
    with FakeTensorMode():
        shapes = (B, num_drafts, L), (B, num_drafts, L + 1, V), (B, num_drafts, L, V)
        kinds = torch.int64, torch.float32, torch.float32
        given = [torch.empty(s, dtype=k, device="fakegpu") for s, k in zip(shapes, kinds)]
        outcome = verifier.outcome(*given)
        sample = outcome.sample(None)
        found = outcome.stop_probs, sample.path_index, sample.length, sample.token
        return sorted({tensor.device.type for tensor in found})


def answer(verifier, num_drafts):
    try:
        return devices(verifier, num_drafts)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


found = {}
for name, verifier in verifiers.items():
    if name not in %r:
        for num_drafts in (1, 3):
            trees = WithoutReplacement((num_drafts, 1))
            process = Iid(num_drafts) if "iid" in verifier.draft_processes else trees
            found[f"{name} {num_drafts}"] = answer(verifier.bind(process), num_drafts)
for wrong in (Reads(), Mixes(), Shapes()):
    found[type(wrong).__name__] = answer(wrong, 2)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, list[str] | str]:
    done = run_forked(PROGRAM % (ON_THE_CPU,))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("num_drafts", [1, 3])
@pytest.mark.parametrize("name", [name for name in verifiers if name not in ON_THE_CPU])
def test_a_round_stays_on_its_device(name: str, num_drafts: int, found: dict[str, list[str] | str]) -> None:
    assert found[f"{name} {num_drafts}"] == ["fakegpu"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("Reads", "DataDependentOutputException"),
        ("Mixes", "FakeTensorDeviceMismatchError"),
        ("Shapes", "DynamicOutputShapeException"),
    ],
)
def test_partner_what_does_not_is_seen(wrong: str, error: str, found: dict[str, list[str] | str]) -> None:
    """A verifier that reads a number, one that mixes devices, one whose shapes depend on entries."""
    assert str(found[wrong]).startswith(error)
