"""Base class of verifiers that test the prefixes of one path: token, block and greedy block verification.

An algorithm supplies its steps.  The base class runs them along drafted paths.  ``exact.laws.by_prefix`` runs
the same steps once at every context of an enumerated pair.
"""

from collections.abc import Callable
from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    at_most_one,
    namespace,
    ones_like,
    prefix_products,
    residual_mass,
    take_token,
    zeros_like,
)
from spectheory.verification.algorithms.one_path.first_path import OnePath, first_path_only, first_path_ratios
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome, on_numbers_of_host


def longest_accepted(accept: Array) -> Array:
    """Compute P(tau = i) from h_1..h_L if tau is the longest accepted prefix.  [..., L] -> [..., L+1]"""
    xp = namespace(accept)
    all_longer_rejected = xp.flip(prefix_products(1 - xp.flip(accept, axis=-1)), axis=-1)
    # If all prefixes are rejected, the empty prefix is accepted.
    return all_longer_rejected * xp.concat([ones_like(accept[..., :1]), accept], axis=-1)


def first_rejected(accept: Array) -> Array:
    """Compute P(tau = i) from h_1..h_L if the prefix after tau is rejected first.  [..., L] -> [..., L+1]"""
    rejected = 1 - namespace(accept).concat([accept, zeros_like(accept[..., :1])], axis=-1)
    return prefix_products(accept) * rejected


class PrefixTests(OnePath):
    """A verifier that tests every prefix X_{1:i} of one path with a probability h_i, independently.

    h_i depends on the prefix, on the rows along it, and on the rows p and q at its end.  The steps are
    elementwise over any leading axes, in numpy, rationals and torch:

    1. w_0 = 1, w_i = ``longer(w_{i-1}, p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}))``, the weight of the prefix
    2. h_i = ``acceptance(w_i, S_i)`` for i < L, with S_i = ``residual_mass(w_i, p, q)``; h_L = ``last(w_L)``
    3. tau follows from h_1..h_L: ``order`` is ``longest_accepted`` or ``first_rejected``
    4. Y ~ ``residual(w_tau, rows)``, normalised; Y ~ ``bonus(p)``, normalised, if tau = L

    ``output_law`` computes the law of such a verifier by contexts.  If a subclass overrides another method
    than the steps, ``output_law`` enumerates all paths instead.

    Attributes:
        order: the function of step 3, [..., L] -> [..., L+1].

    Example:
        Speculative sampling with a lenience of 3/2:

        >>> from spectheory import certify, instances
        >>> class Lenient(PrefixTests):
        ...     name, source, order = "lenient", "an example", staticmethod(first_rejected)
        ...     def longer(self, weight, ratio):
        ...         return at_most_one(3 * ratio / 2)
        ...     def acceptance(self, weight, residual_mass):
        ...         return weight
        ...     def residual(self, weight, rows):
        ...         return rows.residual()
        >>> print(certify(Lenient(), instances.two_token(2)).total_variation)
        1/6
    """

    order: ClassVar[Callable[[Array], Array]]

    def longer(self, weight: Array, ratio: Array) -> Array:
        """Step 1: compute w of a prefix that is one token longer.  [...], [...] -> [...]"""
        raise NotImplementedError

    def acceptance(self, weight: Array, residual_mass: Array) -> Array:
        """Step 2: compute h_i for i < L.  [...], [...] -> [...]"""
        raise NotImplementedError

    def last(self, weight: Array) -> Array:
        """Step 2: compute h_L, by default min(1, w_L).  [...] -> [...]"""
        return at_most_one(weight)

    def residual_mass(self, weight: Array, target_rows: Array, draft_rows: Array) -> Array:
        """Step 2: compute S_i, by default the sum of max(w p - q, 0).  [...], [..., V], [..., V] -> [...]"""
        return residual_mass(target_rows, draft_rows, weight)

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        """Step 4: compute the mass of Y, not normalised, by default max(w p - q, 0) with q = 0 at depth L.

        [...] -> [..., V]
        """
        return rows.residual(weight)

    def bonus(self, target_row: Array) -> Array:
        """Step 4 after a whole path: compute the mass of Y, not normalised.

        The default is p.  The default ``residual`` is proportional to p at depth L.
        """
        return target_row

    @on_numbers_of_host
    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        weights = self.weights(self.ratios(paths, target_rows, draft_rows))
        stop_probs = self.stops(weights, target_rows[..., 0, :, :], draft_rows[..., 0, :, :])

        def residual(path_index: Array, length: Array) -> Array:
            rows = CorrectionRows(target_rows, draft_rows, path_index, length)
            row = self.residual(take_token(weights, length), rows)
            if type(self).bonus is PrefixTests.bonus:
                return row
            at_leaf = (length == paths.shape[-1])[..., None]
            return namespace(row).where(at_leaf, self.bonus(rows.target_row), row)

        return Outcome.from_weights(first_path_only(stop_probs, paths), residual)

    def ratios(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        """Compute p/q of the tokens of the first path, [..., L]."""
        return first_path_ratios(paths, target_rows, draft_rows)

    def weights(self, ratio: Array) -> Array:
        """Step 1 along a path: compute w_0..w_L.  [..., L] -> [..., L+1]"""
        weights = [ones_like(ratio[..., 0])]
        for i in range(ratio.shape[-1]):
            weights.append(self.longer(weights[-1], ratio[..., i]))
        return namespace(ratio).stack(weights, axis=-1)

    def stops(self, weights: Array, target_rows: Array, draft_rows: Array) -> Array:
        """Steps 2 and 3 along a path: compute P(tau = i) for i = 0..L from the weights and the rows.

        [..., L+1], [..., L+1, V], [..., L, V] -> [..., L+1]
        """
        shorter = weights[..., 1:-1]
        masses = self.residual_mass(shorter, target_rows[..., 1:-1, :], draft_rows[..., 1:, :])
        accept = self.acceptance(shorter, masses), self.last(weights[..., -1:])
        return type(self).order(namespace(weights).concat(accept, axis=-1))
