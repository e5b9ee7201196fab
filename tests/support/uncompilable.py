"""A kernel that Triton's interpreter takes and its compiler refuses."""

import triton
import triton.language as tl


@triton.jit
def two_types_kernel(rows, out):
    tl.store(out, tl.load(rows) if tl.load(rows) > 0 else tl.load(out).to(tl.float64))
