"""Plausible, wrong verifiers: each is one mistake away from a lossless one.

They are the negative controls of every check in the package, and an answer to "would you notice?":
each returns proper conditional laws, samples fluently, and is not lossless.  ``kill_matrix`` gives
the exact total variation of each on a table of small pairs.

>>> from spectheory import certify, instances
>>> certificate = certify(defects["target_correction"], instances.two_token(1), with_optimum=False)
>>> print(certificate.target_matching, certificate.total_variation)
False 1/9
"""

from __future__ import annotations

from spectheory.defects._skeletons import Defect
from spectheory.defects.acceptance import (
    ArgmaxAcceptance,
    LenientAcceptance,
    SmoothedRatio,
    SwappedModels,
    TemperedDraftLaw,
    ThresholdAcceptance,
    TruncatedDraftLaw,
    TruncatedTarget,
)
from spectheory.defects.block_weights import (
    BlockAcceptanceWithoutWeight,
    BlockFirstRejection,
    BlockResidualWithoutWeight,
    BlockUncappedWeight,
    BlockWeightAsAcceptance,
)
from spectheory.defects.corrections import (
    AbsoluteResidual,
    DraftBonus,
    DraftCorrection,
    NextCorrectionRow,
    RejectedTokenMasked,
    SharedUniform,
    SharpenedBonus,
    SmoothedResidual,
    StaleCorrectionRow,
    TargetCorrection,
)
from spectheory.defects.matrix import kill_matrix, standard_pairs
from spectheory.defects.registry import defects
from spectheory.defects.several_paths import (
    AllDraftsAssumed,
    DistinctDraftsAssumed,
    GreedyMultipathTies,
    GreedyMultipathUnskewed,
    IndependentAcceptance,
    LikeliestDraft,
    LongestAccepted,
    RecursiveWithoutUpdate,
    SmallDivisionFactor,
)

__all__ = [
    "AbsoluteResidual",
    "AllDraftsAssumed",
    "ArgmaxAcceptance",
    "BlockAcceptanceWithoutWeight",
    "BlockFirstRejection",
    "BlockResidualWithoutWeight",
    "BlockUncappedWeight",
    "BlockWeightAsAcceptance",
    "Defect",
    "DistinctDraftsAssumed",
    "DraftBonus",
    "DraftCorrection",
    "GreedyMultipathTies",
    "GreedyMultipathUnskewed",
    "IndependentAcceptance",
    "LenientAcceptance",
    "LikeliestDraft",
    "LongestAccepted",
    "NextCorrectionRow",
    "RecursiveWithoutUpdate",
    "RejectedTokenMasked",
    "SharedUniform",
    "SharpenedBonus",
    "SmallDivisionFactor",
    "SmoothedRatio",
    "SmoothedResidual",
    "StaleCorrectionRow",
    "SwappedModels",
    "TargetCorrection",
    "TemperedDraftLaw",
    "ThresholdAcceptance",
    "TruncatedDraftLaw",
    "TruncatedTarget",
    "defects",
    "kill_matrix",
    "standard_pairs",
]
