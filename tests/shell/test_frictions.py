"""What went wrong when a new user tried the command line, and the tests that keep it right.

The tests are in the files of the parts that they test. This table lists the tests of each problem,
so that none of them is removed unnoticed.
"""

import pytest

from tests.test_promises import names_by_file

FRICTIONS = {
    "1: the default model was useless, and nothing said so": [
        "estimators/test_selection.py::test_a_linear_truth_in_many_inputs_is_found",
        "estimators/test_selection.py::test_a_quadratic_truth_in_few_of_many_inputs_is_found",
        "shell/test_evaluate_command.py::test_noise_is_remarked",
        "shell/test_evaluate_command.py::"
        "test_a_class_that_is_never_predicted_is_remarked_and_balanced_weights_help",
    ],
    "2: numbers silently became categories": [
        "tables/test_findings.py::test_money_percent_and_thousands_are_numbers",
        "tables/test_findings.py::test_a_few_texts_among_numbers",
        "tables/test_findings.py::test_a_comma_that_may_be_either_mark_is_refused",
        "shell/test_table_options.py::test_train_with_decimal_commas",
    ],
    "3: plots of more than two inputs misled": [
        "plotting/test_model_plots.py::test_boundaries_state_inputs_and_values",
        "plotting/test_model_plots.py::test_only_rows_near_the_plane_are_drawn",
        "plotting/test_model_plots.py::test_no_class_is_painted_over_another",
        "plotting/test_model_plots.py::test_categories_are_drawn_as_strips",
        "plotting/test_model_plots.py::test_regions_have_a_legend_and_labels",
    ],
    "4: explain contradicted itself and hid terms": [
        "explain/test_explain.py::test_terms_are_ranked_by_effect_and_not_by_coefficient",
        "explain/test_explain.py::test_effects_and_shares_of_terms",
        "explain/test_importances.py::test_omitted_pairs_are_counted",
    ],
    "5: regressors were explained as surfaces, and plot refused them": [
        "explain/test_importances.py::test_a_regressor_is_an_equation_of_its_target",
        "shell/test_model_commands.py::test_explain_a_regressor",
        "shell/test_model_commands.py::test_plots_of_hidden_layers_and_regressors",
    ],
    "6: a model could not be scored on another file": [
        "shell/test_evaluate_command.py::test_evaluate_gives_the_scores_of_train",
        "shell/test_table_options.py::test_predict_scores_a_table_with_the_target",
        "shell/test_table_options.py::test_predict_keeps_columns",
    ],
    "7: models from Python did not work on the command line": [
        "shell/test_saved_estimators.py::test_every_command_accepts_it",
        "shell/test_report_command.py::test_the_commands_and_the_code_on_the_page_run",
    ],
    "8: the regressor chose the wrong shape": [
        "estimators/test_selection.py::test_regression_chooses_a_shape",
        "explain/test_importances.py::test_a_hidden_layer_is_explained_by_partial_dependence",
    ],
    "9: many classes were refused, and identifiers were used silently": [
        "shell/test_table_options.py::test_a_thousand_classes",
        "tables/test_findings.py::test_classes_coded_as_integers",
        "tables/test_findings.py::test_identifiers_by_name",
    ],
    "10: pipes, formats, names and slow errors": [
        "shell/test_table_options.py::test_predict_and_train_in_a_pipe",
        "shell/test_table_options.py::test_every_command_reads_other_formats",
        "shell/test_table_options.py::test_the_format_of_the_output_follows_its_name",
        "shell/test_table_options.py::test_names_with_commas",
        "shell/test_table_options.py::test_a_directory_without_a_table",
        "shell/test_table_options.py::test_errors_are_reported_before_slow_imports",
        "shell/test_model_commands.py::test_plots_are_named_after_the_model",
        "explain/test_notebooks.py::test_progress_in_a_notebook_is_a_bar_that_is_updated",
        "explain/test_notebooks.py::test_a_separation_is_a_table_of_classes",
        "shell/test_train_command.py::test_the_tour_of_the_readme",
    ],
    "F3: a leak earned a perfect score and no remark": [
        "tables/test_suspicious_columns.py::test_a_column_that_predicts_the_target_alone_is_a_leak",
        "tables/test_suspicious_columns.py::test_planted_columns_are_found",
        "shell/test_column_remarks.py::test_remarks_are_on_the_terminal_in_json_and_in_the_report",
    ],
    "F4: dates were thrown away, and later rows could not be held out": [
        "tables/test_dates.py::test_the_parts_that_vary_are_used",
        "tables/test_dates.py::test_the_latest_rows_are_held_out",
        "tables/test_dates.py::test_elapsed_time_is_used_only_if_it_predicts_later_rows",
        "tables/test_dates.py::test_a_random_split_of_dated_rows_is_remarked",
    ],
    "F5: codes for missing values ruined a fit silently": [
        "tables/test_suspicious_columns.py::test_codes_for_missing_values",
        "tables/test_findings.py::test_words_that_are_read_as_missing",
        "shell/test_column_remarks.py::test_missing_values_are_saved_with_the_model",
    ],
    "F6: a model predicted otherwise in Python": [
        "tables/test_one_answer.py::test_python_predicts_what_the_shell_predicts_or_refuses",
        "tables/test_one_answer.py::test_every_missing_marker_is_imputed_in_python",
        "tables/test_one_answer.py::test_a_column_that_lost_information_or_cannot_be_read_is_named",
        "tables/test_one_answer.py::test_local_times_that_were_converted_to_utc_are_refused",
    ],
    "F11: the dependence of classifiers was that of probabilities": [
        "plotting/test_model_plots.py::test_lines_of_a_classifier_without_interactions_are_parallel",
    ],
    "F12: incomplete rows were left out of figures": [
        "shell/test_model_commands.py::test_explain_groups_categories_and_imputes_missing_values",
    ],
    "F13: currency and percentages were text": [
        "tables/test_findings.py::test_money_percent_and_thousands_are_numbers",
        "tables/test_findings.py::test_a_point_beside_a_unit_that_may_be_either_mark_is_refused",
        "tables/test_findings.py::test_points_of_plain_numbers_that_may_separate_thousands",
    ],
    "F14: columns with many categories were dropped, and codes were numbers": [
        "tables/test_categories.py::test_140_regions_improve_the_predictions",
        "tables/test_categories.py::test_models_with_encoded_categories_are_restored_and_exported",
        "tables/test_categories.py::test_a_stream_leaves_many_categories_out_and_says_so",
        "tables/test_suspicious_columns.py::test_codes_are_known_by_their_digits",
        "tables/test_suspicious_columns.py::test_numbers_without_order_are_codes",
    ],
    "F15: rare classes had no precision-recall curve and no threshold": [
        "plotting/test_model_plots.py::test_threshold_curves_are_those_of_scikit_learn",
        "shell/test_threshold_options.py::test_predict_uses_the_threshold",
        "shell/test_threshold_options.py::test_train_and_evaluate_report_the_cheapest_threshold",
        "tables/test_threshold.py::test_no_other_threshold_is_cheaper",
    ],
    "F16: ordered answers had no order": [
        "tables/test_categories.py::test_the_usual_scales_are_recognized",
        "tables/test_categories.py::test_ordinals_are_one_input_in_their_order",
        "tables/test_categories.py::test_an_order_on_the_command_line",
    ],
    "F17: money was printed with exponents": [
        "utils/test_text.py::test_numbers_are_written_as_a_person_writes_them",
        "shell/test_report_command.py::"
        "test_numbers_of_money_are_written_in_full_and_the_network_has_importances",
    ],
    "F18: all points of a large table were drawn": [
        "plotting/test_model_plots.py::test_at_most_2000_points_are_drawn_and_counted",
        "plotting/test_model_plots.py::test_residuals_of_many_rows_are_sampled",
    ],
    "F19: predictions far outside the training range looked like others": [
        "shell/test_column_remarks.py::test_rows_outside_the_training_range_are_counted_and_named",
    ],
    "F20: importances were negative": [
        "explain/test_importances.py::test_importances_of_correlated_inputs_are_not_negative",
    ],
    "F23: dates and identifiers were trained as targets": [
        "tables/test_categories.py::test_targets_that_cannot_be_predicted_are_refused_at_once",
        "tables/test_categories.py::test_unlikely_targets_are_remarked",
    ],
    "F24: probabilities far off had no remark": [
        "tables/test_evaluation.py::test_only_bad_probabilities_are_remarked",
    ],
    "F25: the report lacked contents, remarks and curves": [
        "shell/test_report_command.py::test_the_page_is_complete_and_loads_nothing",
        "shell/test_column_remarks.py::test_remarks_are_on_the_terminal_in_json_and_in_the_report",
    ],
    "F26: texts named options in Python, or pipelines, or the wrong cause": [
        "shell/test_options_in_texts.py::test_the_command_line_names_options",
        "explain/test_importances.py::test_names_of_encoded_columns_have_no_names_of_pipelines",
        "plotting/test_model_plots.py::test_categories_that_are_not_drawn_are_counted",
        "tables/test_text_files.py::test_a_json_file_is_recognized_with_the_conversion",
    ],
}


@pytest.mark.parametrize("friction", FRICTIONS)
def test_each_friction_has_tests(friction):
    for name in FRICTIONS[friction]:
        file, test = name.split("::")
        assert test in names_by_file().get(file, ()), name
