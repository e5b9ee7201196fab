"""mlx-dspark: token verification of one path with coins."""

from collections.abc import Callable
from typing import Any

from audits.forms.mlx import ARRAYS
from audits.forms.one_path import one_request
from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject

LIBRARY = Library("mlx-dspark", "mlx_dspark", "0.20.3", {"mlx.core": ARRAYS})
FUNCTION = Function(
    "_spec_sample_accept",
    ("mlx_dspark.generate",),
    frozenset({"v_logits", "draft", "q_probs", "temperature"}),
)
CATEGORICAL = "mx.random.categorical: a draw with the softmax of the logits"


def mlx_dspark(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "sampler", of one path."""
    return one_request(
        lambda drafted, target, draft, _: code.call(
            v_logits=target[0].log().numpy(),
            draft=drafted[0].tolist(),
            q_probs=draft[0].numpy(),
            temperature=1.0,
        )
    )


SUBJECTS = {
    "mlx-dspark": Subject(
        LIBRARY,
        FUNCTION,
        mlx_dspark,
        {"5daf551b3fcc157d0fd9b3485a850fd7a837136ff4026fa0baee2f3f8077ecfd": LIBRARY.tested},
        "sampler",
        mistake=("accepted = u < mx.minimum", "accepted = u > mx.minimum"),
        settings={"num_drafts": (1,), "stand_ins": (CATEGORICAL,)},
    )
}
