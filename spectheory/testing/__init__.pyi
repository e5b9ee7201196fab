from . import strategies as strategies
from .assertions import assert_lossless as assert_lossless
