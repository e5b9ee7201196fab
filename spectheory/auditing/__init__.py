"""Audits: find the exact law of a shipped sampler from its code, and give a verdict on it.

The folders, in reading order; each imports only from those before it.

- ``tape``: the random decisions of one run, and numbers that are split into cases instead of being drawn.
- ``following``: torch operators, numpy arrays and Triton kernels on such numbers.
- ``handing``: random numbers that are handed to code which is not followed.
- ``probing``: the law of such code, learned from calls, and a bound on its error.
- ``drawing``: bets against the answers of code to which no numbers can be handed.
- ``subjects``: samplers as verifiers, and the samplers of libraries by name.
- ``rounds``: the pairs, batches and consecutive calls on which we judge a sampler.
- ``verdicts``: ``spectheory.audit``, its cases and its certificate.

The public names are those of ``__init__.pyi``; each is imported from its file on first use.
"""

from spectheory.foundation.extras import attach_room

__getattr__, __dir__, __all__ = attach_room(__name__, __file__)
