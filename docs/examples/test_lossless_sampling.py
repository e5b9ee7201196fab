"""The verification of drafts is lossless: copy this file into your tests, and import your function.

It needs pytest and spectheory[models], and takes seconds on a CPU.  ``pytest -rP`` prints what was looked at.
"""

import pytest
import torch
from my_sampler import verify  # (paths, target_rows, draft_rows, generator) -> tokens, as SIGNATURE says

from spectheory.testing import assert_sampler_lossless

SIGNATURE = "sampler"  # how verify is called; docs/auditing.md lists the others
NUM_DRAFTS = (1,)  # the numbers of drafted paths of a call, as (1, 2, 3) where it takes several


def test_verification_is_lossless():
    print(assert_sampler_lossless(verify, SIGNATURE, drafts=NUM_DRAFTS).headline())


def forgets_the_residual(paths, target_rows, draft_rows, generator):
    """A wrong partner, which the check must find: a rejected token is replaced by a draw from the target."""
    for place, token in enumerate(paths[0].tolist()):
        if torch.rand((), generator=generator) * draft_rows[0, place, token] >= target_rows[0, place, token]:
            correction = torch.multinomial(target_rows[0, place], 1, generator=generator)
            return [*paths[0, :place].tolist(), int(correction)]
    return [*paths[0].tolist(), int(torch.multinomial(target_rows[0, -1], 1, generator=generator))]


def test_a_wrong_partner_is_found():
    with pytest.raises(AssertionError, match="its law is not the target's"):
        assert_sampler_lossless(forgets_the_residual, drafts=(1,))
