"""How likely the one-path verifiers are to keep a drafted prefix: P(tau >= i | X_{1:i}).

Each function takes what a verifier takes and looks at the first drafted path.  It returns the L + 1
probabilities for i = 0..L, the first of which is 1.  The functions use the verifiers' own steps, in the
arithmetic of the rows: exact rationals, float64 or torch.  Along every path

    token <= block <= greedy_block

(theory.md Statement 4.3).  E[tau] is the sum of q(a) P(tau >= |a| | a) over the contexts a of depth 1 to L,
so the three have their block efficiencies in the same order.
"""

from __future__ import annotations

from spectheory.foundation.arrays import Array, at_most_one, prefix_products
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.one_path.first_path import first_path_ratios
from spectheory.verification.algorithms.one_path.token import Token


def token_likelihood(paths: Array, target_rows: Array, draft_rows: Array) -> Array:
    """``token``: the product of min(1, p(X_j | X_{1:j-1}) / q(X_j | X_{1:j-1})) over j <= i.

    Args:
        paths: [..., K, L] token ids; the first of the K paths is looked at.
        target_rows: [..., K, L+1, V].
        draft_rows: [..., K, L, V].

    Returns:
        [..., L+1], probabilities.

    Example:
        >>> import numpy as np
        >>> paths = np.array([[[0, 1]]])
        >>> target, draft = np.full((1, 1, 3, 2), 0.5), np.full((1, 1, 2, 2), [0.8, 0.2])
        >>> token_likelihood(paths, target, draft)
        array([[1.   , 0.625, 0.625]])
    """
    return prefix_products(Token().acceptance(paths, target_rows, draft_rows))


def block_likelihood(paths: Array, target_rows: Array, draft_rows: Array) -> Array:
    """``block``: w_i = min(1, w_{i-1} p/q), block2024 Algorithm 2, line 4.

    Args and returns as in ``token_likelihood``.

    Example:
        >>> import numpy as np
        >>> paths = np.array([[[0, 1]]])
        >>> target, draft = np.full((1, 1, 3, 2), 0.5), np.full((1, 1, 2, 2), [0.8, 0.2])
        >>> block_likelihood(paths, target, draft)
        array([[1.   , 0.625, 1.   ]])
    """
    return Block().weights(first_path_ratios(paths, target_rows, draft_rows))


def greedy_block_likelihood(paths: Array, target_rows: Array, draft_rows: Array) -> Array:
    """``greedy_block``: min(1, p(X_{1:i}) / q(X_{1:i})), block2024 Lemma 9.

    Args and returns as in ``token_likelihood``.

    Example:
        >>> import numpy as np
        >>> paths = np.array([[[1, 0]]])
        >>> target, draft = np.full((1, 1, 3, 2), 0.5), np.full((1, 1, 2, 2), [0.8, 0.2])
        >>> greedy_block_likelihood(paths, target, draft)
        array([[1., 1., 1.]])
    """
    path_ratio = prefix_products(first_path_ratios(paths, target_rows, draft_rows))
    return at_most_one(path_ratio)
