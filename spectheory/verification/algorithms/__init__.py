"""Verification algorithms, one per file.  ``verifiers`` maps names to them.

Three families have base classes.  In ``one_path`` the law depends on the first drafted path only,
``position_by_position`` verifies several drafts position by position, and ``path_selection`` selects one of
several drafts and block-verifies it.

``traversal``, ``conditional_transport``, ``spectr_gbv`` and ``naive_sampling`` belong to no family.
``recoupled`` and ``pooled`` wrap lossless verifiers, for small vocabularies; they are not in ``verifiers``.
``recoupling_gain`` computes the gain of ``recoupled`` at any vocabulary size.
"""

from spectheory.verification.verifier import Registry

# Append new entries at the end: colours in figures and the order of tables follow the registry.
verifiers = Registry(
    __name__,
    {
        "token": "one_path.token:Token",
        "block": "one_path.block:Block",
        "greedy_block": "one_path.greedy_block:GreedyBlock",
        "kseq": "position_by_position.kseq:KSeq",
        "spectr": "position_by_position.spectr:SpecTr",
        "multi_round": "position_by_position.multi_round:MultiRound",
        "multi_round_without_replacement": (
            "position_by_position.multi_round_without_replacement:MultiRoundWithoutReplacement"
        ),
        "otm": "position_by_position.otm:OTM",
        "greedy_multipath": "path_selection.greedy_multipath:GreedyMultipath",
        "mixed_multipath": "path_selection.mixed_multipath:MixedMultipath",
        "scored_multipath": "path_selection.scored_multipath:ScoredMultipath",
        "optimal_multipath": "path_selection.optimal_multipath:OptimalMultipathOfPair",
        "traversal": "traversal:Traversal",
        "spectr_gbv": "spectr_gbv:SpecTrGbv",
        "naive_sampling": "naive_sampling:NaiveSampling",
        "conditional_transport": "conditional_transport:ConditionalTransport",
    },
)
"""Name -> algorithm with its default parameters.  Each is imported on first use."""
