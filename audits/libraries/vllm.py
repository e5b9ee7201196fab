"""vLLM's first model runner: token verification in Triton kernels."""

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from audits.forms.flat_batch import BONUS, MIXES, PARAMETERS, flat_batch
from audits.forms.stated import AT_RATES, FLY, FLY_LAW, SYNTHETIC
from audits.loading.library_code import Code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.following.kernel_draws import elementwise
from spectheory.auditing.verdicts.audit_certificate import RELAXATION

FUNCTION = Function("rejection_sample", ("vllm.v1.sample.rejection_sampler",), PARAMETERS)


def rejection_sample(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    return flat_batch(code.call, float(code.constant("GREEDY_TEMPERATURE", 0)))


def _triton() -> Mapping[str, Any]:
    import triton
    import triton.language as tl

    device = SimpleNamespace(log1p=elementwise(np.log1p))
    return {"tl": tl, "triton": triton, "tldevice": device, "HAS_TRITON": True}


def _dispatcher(*, kernel: Any, warmup_inputs: Any) -> Callable[..., Any]:
    """Turn a function that returns grid and constants into a launch of the kernel, without a warmup."""

    def decorate(dispatch: Callable[..., Any]) -> Callable[..., Any]:
        def launch(*args: Any, **kwargs: Any) -> None:
            bound = inspect.signature(dispatch).bind(*args, **kwargs)
            bound.apply_defaults()
            grid, constants = dispatch(*args, **kwargs)
            named = {
                name: value
                for given, value in bound.arguments.items()
                for name in (given, f"{given}_ptr")
                if name in kernel.arg_names
            }
            kernel[grid](**named, **constants)

        return launch

    return decorate


GIVEN = {
    "vllm.triton_utils": Given(
        "vllm.triton_utils: Triton, with numpy's log1p for the device's", _triton, has_kernels=True
    ),
    "vllm.model_executor.warmup.jit_warmup_triton_helper": Given(
        "triton_kernel_dispatcher_with_warmup: launches without a warmup",
        lambda: {"triton_kernel_dispatcher_with_warmup": _dispatcher},
    ),
}
LIBRARY = Library("vllm", "vllm", "0.33.0", GIVEN)
_TOKEN = Subject(
    LIBRARY,
    FUNCTION,
    rejection_sample,
    {
        "9f035dd0c5af33b29ffcc63e2192f7b2fb85f8a6b4ac89275ecb5698f7ca2ff1": "0.33.0",
        "4bb87d7984d967be9c7e5b6a6b489c02571ef2f2913211cb3f1eea74b2e1f32f": "0.27.1",
    },
    "batch",
    mistake=("accepted = draft_prob > 0 and target_prob / draft_prob >= uniform_prob", "accepted = True"),
    settings={"mixes": MIXES, "stand_ins": (BONUS,)},
)
SUBJECTS = {
    "vllm": _TOKEN,
    "vllm-synthetic": _TOKEN._replace(
        verdict=RELAXATION,
        mistake=("accepted = uniform_prob < rate", "accepted = uniform_prob > rate"),
        options={"synthetic_mode": True, **SYNTHETIC},
        settings={**_TOKEN.settings, "relaxation": AT_RATES},
    ),
    "vllm-fly": _TOKEN._replace(
        verdict=RELAXATION, options=FLY, settings={**_TOKEN.settings, "relaxation": FLY_LAW}
    ),
}
