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
}


@pytest.mark.parametrize("friction", FRICTIONS)
def test_each_friction_has_tests(friction):
    for name in FRICTIONS[friction]:
        file, test = name.split("::")
        assert test in names_by_file().get(file, ()), name
