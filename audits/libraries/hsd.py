"""Hierarchical speculative decoding: its copies of transformers and of EAGLE."""

from audits.libraries.eagle import FUNCTION as POSTERIOR
from audits.libraries.eagle import evaluate_posterior
from audits.libraries.transformers import FUNCTION, assisted
from audits.subject import Library, Subject
from spectheory.foundation.results import NOT_LOSSLESS

REPOSITORY = "ZhouYuxuanYX/Hierarchical-Speculative-Decoding"
# The last commit whose file is valid Python; the EAGLE beside it is of the newest commit.
LIBRARY = Library("hsd", "transformers", "f3adf7f13e43011d49c29a9ce9d7ad79a1296343", repository=REPOSITORY)
OF_EAGLE = Library("hsd-eagle", "eagle", "b8575e2ad42bcf2b32d0c6f3481eb49099453f33", repository=REPOSITORY)
_BLOCK = Subject(
    LIBRARY,
    FUNCTION,
    assisted,
    {"087cf84329c13b6eb3d52bd6bc6f164cd4fc1798f0a390bd5a06862ad2950a71": LIBRARY.tested},
    "speculative_sampling",
    mistake=("u_gamma >= reject.cpu()", "u_gamma <= reject.cpu()"),
    options={"blockwise": True},
)
CAPPED = (
    "probability_ratio = torch.exp(torch.log(p_i).cumsum(1) - torch.log(q_i).cumsum(1)).unsqueeze(-1)",
    "probability_ratio = new_p_previous / joint_q_previous * (p_i / q_i).unsqueeze(-1)",
)
SUBJECTS = {
    "hsd": _BLOCK._replace(
        verdict=NOT_LOSSLESS,
        mistake=None,
        mend=(CAPPED,),
        options={"backward": True, "clever": True},
    ),
    "hsd-block": _BLOCK,
    "hsd-eagle": Subject(
        OF_EAGLE,
        POSTERIOR,
        evaluate_posterior,
        {"069012fd57b0acc41ea116168469ce42ff324d9e05abccef9a18c055f3f18c26": OF_EAGLE.tested},
        "evaluate_posterior",
        mistake=("step_back = uniform_rand < step_back_probs", "step_back = uniform_rand > step_back_probs"),
        options={"hsd": True},
    ),
}
