"""Long lists in the quick tests: a part of them, the rest being deep tests."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ONE_IN = {
    "auditing/following/test_intercept.py": {
        "test_what_is_drawn_has_that_law": 3,
    },
    "auditing/following/test_random_tensor.py": {
        "test_torch_draws_from_that_law": 4,
    },
    "auditing/following/test_triton_kernels.py": {
        "test_laws": 3,
    },
    "auditing/following/test_what_a_sampler_may_do.py": {
        "test_a_right_sampler_is_lossless_and_a_wrong_one_a_defect": 8,
    },
    "auditing/rounds/test_batches.py": {
        "test_every_specimen_is_right_alone_and_wrong_in_a_batch": 3,
        "test_requests_that_are_taken_for_each_other": 2,
        "test_requests_are_alike_in_every_length": 12,
        "test_requests_of_several_paths_are_equal_in_every_shape": 0,
        "test_kinds_of_batches_meet": 6,
        "test_greedy_requests_get_the_likeliest_tokens": 0,
    },
    "auditing/rounds/test_battery.py": {
        "test_trees_leave_two_tokens_to_the_correction": 0,
    },
    "auditing/rounds/test_later_drafts.py": {
        "test_coins_of_later_drafts": 0,
        "test_every_place_of_three_drafts_is_rejected_in_a_batch": 3,
        "test_requests_that_share_the_coin_of_a_later_draft": 4,
        "test_rows_of_several_paths_are_not_all_sixteenths": 6,
        "test_requests_in_batches_that_are_greedy_or_rounded": 6,
    },
    "auditing/rounds/test_questions.py": {
        "test_wrong_from_two_or_three_drafts_on": 3,
        "test_trees_are_asked_where_the_sampler_takes_them": 0,
        "test_the_law_is_that_of_the_outcomes": 2,
    },
    "auditing/rounds/test_two_rounds.py": {
        "test_requests_that_accept_different_numbers": 3,
        "test_rounds_are_told_apart_in_the_shapes_that_are_asked": 0,
    },
    "auditing/subjects/adapters/test_accepted_counts.py": {
        "test_one_path": 5,
    },
    "auditing/subjects/adapters/test_flat_batch.py": {
        "test_the_implementation_is_called_as_its_module_calls_it": 2,
        "test_the_torch_path_runs_without_a_device": 2,
        "test_kernels_are_launched_with_their_arguments_by_name": 2,
    },
    "auditing/subjects/adapters/test_mlx_lm.py": {
        "test_samplers_with_coins": 3,
        "test_a_generator_that_samples_and_compares": 2,
    },
    "auditing/subjects/adapters/test_model_rounds.py": {
        "test_a_round_of_a_library": 3,
    },
    "auditing/subjects/adapters/test_sglang.py": {
        "test_a_mutant_of_the_released_file_is_caught": 2,
        "test_block_verification_is_exact_and_optimal_on_dyadic_pairs": 3,
    },
    "auditing/subjects/adapters/test_vllm_v2.py": {
        "test_partner_mutants": 3,
    },
    "auditing/subjects/test_draft_generators.py": {
        "test_generators_that_say_what_they_do": 2,
        "test_gemma4_assistants_draft_the_argmax_and_report_the_softmax": 3,
    },
    "auditing/subjects/test_drafting_rounds.py": {
        "test_every_wrong_round_is_caught_and_its_mended_partner_passes": 3,
    },
    "auditing/subjects/test_libraries.py": {
        "test_a_checkout": 4,
    },
    "auditing/subjects/test_sampler_verifiers.py": {
        "test_samplers_have_the_law_of_the_published_ones": 3,
    },
    "auditing/subjects/test_signatures.py": {
        "test_a_right_sampler_of_each_signature": 6,
        "test_partner_a_wrong_sampler_of_each_signature": 3,
    },
    "auditing/subjects/test_specimens.py": {
        "test_drafts_that_differ_need_a_residual_of_their_own": 4,
        "test_a_specimen_has_the_law_of_its_verifier": 6,
    },
    "auditing/subjects/test_tree_specimens.py": {
        "test_the_wrong_partner_shows_only_with_several_paths": 2,
        "test_what_a_call_with_children_shows": 2,
    },
    "auditing/tape/test_decisions.py": {
        "test_a_real_generator_draws_from_that_law": 3,
    },
    "auditing/verdicts/test_chi_squared.py": {
        "test_outputs_are_completed_with_the_targets_own_rows": 0,
        "test_the_stated_power_is_there": 0,
    },
    "auditing/verdicts/test_hostile_samplers.py": {
        "test_what_outlasts_a_call_is_a_defect": 2,
        "test_counts_and_rows_must_fit": 3,
    },
    "auditing/verdicts/test_sampler_audit.py": {
        "test_every_specimen_is_caught": 10,
        "test_partner_no_lossless_sampler_is": 5,
        "test_a_law_that_other_numbers_decide_is_not_decided": 2,
        "test_what_a_run_does_not_follow_is_not_decided": 4,
    },
    "command_line/test_audit_commands.py": {
        "test_the_round_of_the_documentation": 2,
        "test_several_samplers": 0,
        "test_a_sampler_that_fails_costs_only_its_own_audit": 2,
    },
    "command_line/test_documented_fields.py": {
        "test_everything_printed_is_defined": 4,
    },
    "command_line/test_simulation_status.py": {
        "test_simulate_interrupted": 2,
        "test_texts_that_are_interrupted": 2,
    },
    "command_line/test_streams.py": {
        "test_closed_pipes": 16,
        "test_processes": 2,
    },
    "command_line/test_theory_commands.py": {
        "test_csv_has_the_fields_of_json": 3,
    },
    "decoding/test_decoded_texts.py": {
        "test_greedy_texts_of_every_family": 4,
        "test_greedy_texts_of_every_verifier": 4,
        "test_texts_are_drawn_from_laws_alone": 3,
    },
    "decoding/test_huggingface.py": {
        "test_greedy_texts_are_those_of_transformers": 5,
        "test_tokens_are_streamed_as_they_come": 2,
    },
    "decoding/test_loop.py": {
        "test_texts_follow_the_target": 6,
        "test_partner_wrong_verifiers_do_not": 4,
        "test_partner_mistakes_in_the_loop_do_not": 4,
        "test_a_text_does_not_depend_on_its_batch": 2,
    },
    "exact/proof/test_check_postponed.py": {
        "test_a_changed_proof_is_rejected": 5,
    },
    "exact/proof/test_postponed.py": {
        "test_defects_have_no_facts": 8,
        "test_wrong_verifiers_without_questions_have_no_facts": 6,
        "test_partner_the_frame_of_these_verifiers_has_facts": 0,
    },
    "exact/proof/test_resume.py": {
        "test_a_search_that_is_killed_is_kept": 2,
        "test_a_search_for_something_else_is_refused": 4,
    },
    "exact/proof/test_search.py": {
        "test_verifiers_that_cannot_be_followed_are_not_proved": 12,
        "test_verifiers_that_are_wrong_somewhere_are_refuted": 0,
        "test_published_verifiers_are_proved": 4,
    },
    "exact/proof/test_statements.py": {
        "test_statements_are_proved_and_checked": 6,
    },
    "exact/proof/test_substitution.py": {
        "test_partner_without_one_condition_nothing_is_closed": 2,
    },
    "exact/test_certificate.py": {
        "test_users_verifiers_have_the_law_of_the_built_in_ones": 3,
    },
    "exact/test_iteration.py": {
        "test_markov_memory_agrees_with_deep_pairs": 3,
    },
    "exact/test_law.py": {
        "test_chunks_do_not_change_the_law": 5,
    },
    "exact/test_rounded.py": {
        "test_verifiers_that_are_wrong_somewhere_are_caught": 8,
        "test_what_was_not_asked_is_excluded_by_words": 5,
    },
    "exact/test_suite.py": {
        "test_a_verifier_that_is_wrong_on_one_tree_is_flagged": 3,
        "test_every_wrong_verifier_is_flagged": 8,
        "test_every_lossless_verifier_is_cleared": 14,
    },
    "foundation/kernels/test_knot_kernels.py": {
        "test_between_knots": 8,
        "test_rows_scaled_between_knots": 2,
        "test_the_kernel_compiles_for_a_device": 2,
    },
    "foundation/kernels/test_row_kernels.py": {
        "test_masses_and_residuals_of_half_precision": 4,
        "test_sorts": 8,
        "test_masses": 8,
        "test_rows_at_stops": 8,
        "test_draws": 4,
    },
    "foundation/kernels/test_triton_rows.py": {
        "test_residuals": 4,
        "test_they_compile_for_a_device": 4,
        "test_draws": 3,
    },
    "foundation/test_extras.py": {
        "test_a_missing_library_is_one_line": 2,
    },
    "models/test_derived_drafts.py": {
        "test_rows_are_those_of_the_stated_law": 3,
    },
    "optima/bounds/test_antichain_hulls.py": {
        "test_separation_against_enumeration": 3,
    },
    "optima/interval/test_interval.py": {
        "test_tiny_probabilities": 4,
    },
    "optima/one_position/test_optimal_transport.py": {
        "test_min_cut_is_the_transport_optimum_for_any_law": 2,
        "test_tiny_marginals_are_not_called_infeasible": 3,
    },
    "optima/test_lossy.py": {
        "test_unsimplified_program_is_the_antichain_program": 4,
    },
    "optima/test_multi_path.py": {
        "test_random_pairs": 3,
    },
    "optima/test_tree_rankings.py": {
        "test_exhaustive_search_against_plain_enumeration": 2,
    },
    "figures/test_models.py": {
        "test_partner_two_routes_that_differ_and_a_defect_are_seen": 2,
        "test_an_interrupted_simulation_is_no_figure": 4,
    },
    "figures/test_partners.py": {
        "test_checks_can_fail": 8,
        "test_lower_printed_numbers_are_seen": 2,
    },
    "simulation/test_finished_lines.py": {
        "test_a_torn_last_line_is_cut_off": 3,
        "test_a_stopped_run_goes_on_from_its_checkpoint": 0,
    },
    "simulation/test_first_line.py": {
        "test_other_settings": 3,
        "test_another_model_in_the_same_folder": 2,
    },
    "simulation/test_judging.py": {
        "test_what_is_no_law_is_refused_on_language_models": 9,
    },
    "simulation/test_runs.py": {
        "test_trees_of_drafts_agree_with_their_enumeration": 0,
    },
    "test_iteration_draft_processes.py": {
        "test_law_of_decoded_tokens_on_trees": 2,
        "test_lossless_over_iterations_on_trees": 2,
    },
    "test_mutants.py": {
        "test_drawn_mutants_fit_the_tree": 0,
    },
    "test_notebooks.py": {
        "test_stored_outputs_are_current": 10,
        "test_a_light_notebook_runs_with_its_extra": 8,
    },
    "testing/test_strategies.py": {
        "test_the_arithmetic_asked_for_is_the_only_one": 2,
    },
    "verification/algorithms/path_selection/test_greedy_multipath.py": {
        "test_greedy_is_lossless_with_every_tree_ranking": 4,
    },
    "verification/algorithms/path_selection/test_leaf_rankings.py": {
        "test_every_explicit_order_is_lossless": 5,
    },
    "verification/algorithms/path_selection/test_mixed_multipath.py": {
        "test_mixture_is_lossless_and_concave": 3,
        "test_rule_at_the_root": 3,
    },
    "verification/algorithms/path_selection/test_on_path_splits.py": {
        "test_the_control_is_nothing_in_the_mean": 2,
        "test_samples_are_above_the_best_split_on_average": 3,
    },
    "verification/algorithms/path_selection/test_score_couplings.py": {
        "test_every_plan_splits_the_law": 3,
    },
    "verification/algorithms/path_selection/test_score_levels.py": {
        "test_levels_are_feasible_and_serve_the_min_cut": 3,
    },
    "verification/algorithms/path_selection/test_scored.py": {
        "test_skewed_draft_is_the_law_of_the_selected_path": 3,
    },
    "verification/algorithms/path_selection/test_scored_multipath.py": {
        "test_every_rule_is_lossless": 4,
        "test_closes_most_of_what_others_leave": 3,
    },
    "verification/algorithms/path_selection/test_selection.py": {
        "test_torch_agrees_with_numpy": 5,
    },
    "verification/algorithms/position_by_position/test_kseq.py": {
        "test_a_residual_below_the_last_bits_is_not_lost": 2,
    },
    "verification/algorithms/position_by_position/test_kseq_verifier.py": {
        "test_kseq_is_lossless_for_every_factor_from_the_best_on": 4,
    },
    "verification/algorithms/position_by_position/test_multi_round_without_replacement.py": {
        "test_multi_round_without_replacement_is_lossless_and_as_acted_out": 4,
    },
    "verification/algorithms/position_by_position/test_positions.py": {
        "test_draws_partner_counting_repeats_breaks_validity": 2,
    },
    "verification/algorithms/test_bytes.py": {
        "test_no_round_moves_more_than_its_limit": 0,
    },
    "verification/algorithms/test_every_verifier.py": {
        "test_one_draft_reductions": 3,
        "test_lossless_and_below_the_optimum_of_its_drafts": 3,
        "test_one_position_is_optimal_transport": 4,
    },
    "verification/algorithms/test_general_verifiers.py": {
        "test_float_law_agrees_with_the_rational_law": 3,
        "test_no_verifier_exceeds_the_transport_of_one_position": 4,
    },
    "verification/algorithms/test_numbers_of_host.py": {
        "test_laws_and_samples_are_those_of_torch_alone": 4,
    },
    "verification/algorithms/test_recoupled.py": {
        "test_one_position_is_optimal_transport": 4,
        "test_value_by_minimum_cuts_is_that_of_the_law": 3,
        "test_one_model_per_path": 2,
        "test_optimal_where_scored_selection_is_not": 2,
    },
    "verification/algorithms/test_torch.py": {
        "test_samples_follow_the_exact_law": 5,
        "test_rao_blackwell_mean_estimates_the_block_efficiency": 5,
        "test_impossible_outputs_are_never_sampled": 3,
        "test_outcomes_agree_with_numpy": 6,
    },
    "verification/defective/test_every_defect.py": {
        "test_exchangeable_defects_are": 2,
        "test_defects_return_proper_laws": 3,
        "test_defects_are_caught_on_the_shared_table": 3,
        "test_one_definition_in_float64": 3,
    },
    "verification/test_captured_rounds.py": {
        "test_a_replayed_round_is_the_round": 4,
    },
    "verification/test_compilation.py": {
        "test_a_round_is_one_graph": 3,
    },
    "verification/test_other_rows.py": {
        "test_answers_that_are_kept_for_other_rows": 3,
    },
    "verification/test_sampler_runs.py": {
        "test_every_door": 2,
        "test_texts_follow_the_target": 4,
    },
    "verification/test_verifier.py": {
        "test_a_wrong_declaration_does_not_make_a_verifier_lossless": 2,
    },
}
"""File -> test -> of how many of its cases one is quick, the first; the others are deep tests, of 0 all."""


def thin(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that ``ONE_IN`` leaves to the deep tests."""
    places: Counter[tuple[str, str]] = Counter()
    for item in items:
        file, name = _file_of(item), item.name.partition("[")[0]
        one_in = ONE_IN.get(file, {}).get(name)
        if one_in is None or item.get_closest_marker("deep"):
            continue
        if one_in == 0 or places[file, name] % one_in:
            item.add_marker(pytest.mark.deep)
        places[file, name] += 1


def _file_of(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""


def shares(numbers: Iterable[int], quick: int) -> pytest.MarkDecorator:
    """One test for each number, ``first``; all but ``quick`` of them are deep."""
    marks = [(), pytest.mark.deep]
    return pytest.mark.parametrize(
        "first", [pytest.param(first, marks=marks[place >= quick]) for place, first in enumerate(numbers)]
    )
