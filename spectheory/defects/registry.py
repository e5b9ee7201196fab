"""The gallery: every known-wrong verifier by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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

DEFECTS: tuple[type[Defect], ...] = (
    # the token after the accepted prefix
    TargetCorrection,
    DraftCorrection,
    AbsoluteResidual,
    RejectedTokenMasked,
    SmoothedResidual,
    DraftBonus,
    SharpenedBonus,
    SharedUniform,
    StaleCorrectionRow,
    NextCorrectionRow,
    # acceptance, and the law the drafts are said to have
    SwappedModels,
    SmoothedRatio,
    LenientAcceptance,
    ThresholdAcceptance,
    ArgmaxAcceptance,
    TemperedDraftLaw,
    TruncatedDraftLaw,
    TruncatedTarget,
    # block verification
    BlockAcceptanceWithoutWeight,
    BlockResidualWithoutWeight,
    BlockUncappedWeight,
    BlockFirstRejection,
    BlockWeightAsAcceptance,
    # several drafts
    GreedyMultipathTies,
    GreedyMultipathUnskewed,
    LikeliestDraft,
    LongestAccepted,
    IndependentAcceptance,
    SmallDivisionFactor,
    AllDraftsAssumed,
    RecursiveWithoutUpdate,
    DistinctDraftsAssumed,
)

defects: Mapping[str, Defect] = MappingProxyType({kind.name: kind() for kind in DEFECTS})
"""Every known-wrong verifier by name; none is lossless."""

__all__ = ["DEFECTS", "defects"]
