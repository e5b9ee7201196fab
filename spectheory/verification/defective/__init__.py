"""Plausible but wrong verifiers: each is one mistake away from a lossless one.

They are the negative controls of every check in the package.  Each returns conditional laws and samples
plausible text, and is not lossless.  At least one of ``suite_cases.standard_pairs`` exposes each.

>>> from spectheory import certify, instances
>>> certificate = certify(defects["target_correction"], instances.two_token(1), with_optimum=False)
>>> print(certificate.target_matching, certificate.total_variation)
False 1/9
"""

from spectheory.verification.verifier import Registry

defects = Registry(
    __name__,
    {
        # the token after the accepted prefix
        "target_correction": "corrections:TargetCorrection",
        "draft_correction": "corrections:DraftCorrection",
        "absolute_residual": "corrections:AbsoluteResidual",
        "rejected_token_masked": "corrections:RejectedTokenMasked",
        "smoothed_residual": "corrections:SmoothedResidual",
        "draft_bonus": "corrections:DraftBonus",
        "sharpened_bonus": "corrections:SharpenedBonus",
        "shared_uniform": "corrections:SharedUniform",
        "stale_correction_row": "corrections:StaleCorrectionRow",
        "next_correction_row": "corrections:NextCorrectionRow",
        # acceptance, and the assumed law of the drafts
        "swapped_models": "acceptance_rules:SwappedModels",
        "smoothed_ratio": "acceptance_rules:SmoothedRatio",
        "lenient_acceptance": "acceptance_rules:LenientAcceptance",
        "threshold_acceptance": "acceptance_rules:ThresholdAcceptance",
        "argmax_acceptance": "acceptance_rules:ArgmaxAcceptance",
        "tempered_draft_law": "acceptance_rules:TemperedDraftLaw",
        "truncated_draft_law": "acceptance_rules:TruncatedDraftLaw",
        "truncated_target": "acceptance_rules:TruncatedTarget",
        # block verification
        "block_acceptance_without_weight": "block_weights:BlockAcceptanceWithoutWeight",
        "block_residual_without_weight": "block_weights:BlockResidualWithoutWeight",
        "block_uncapped_weight": "block_weights:BlockUncappedWeight",
        "block_uncapped_last_weight": "block_weights:BlockUncappedLastWeight",
        "block_first_rejection": "block_weights:BlockFirstRejection",
        "block_weight_as_acceptance": "block_weights:BlockWeightAsAcceptance",
        # several drafts
        "greedy_multipath_ties": "several_drafts:GreedyMultipathTies",
        "greedy_multipath_unskewed": "several_drafts:GreedyMultipathUnskewed",
        "likeliest_draft": "several_drafts:LikeliestDraft",
        "longest_accepted": "several_drafts:LongestAccepted",
        "independent_acceptance": "several_drafts:IndependentAcceptance",
        "small_division_factor": "several_drafts:SmallDivisionFactor",
        "all_drafts_assumed": "several_drafts:AllDraftsAssumed",
        "recursive_without_update": "several_drafts:RecursiveWithoutUpdate",
        "distinct_drafts_assumed": "several_drafts:DistinctDraftsAssumed",
    },
)
"""Name -> known-wrong verifier."""
