from . import strategies as strategies
from .assertions import assert_lossless as assert_lossless
from .assertions import assert_sampler_lossless as assert_sampler_lossless
