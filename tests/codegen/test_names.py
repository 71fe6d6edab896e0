"""No name of a column, category or class can become code, and texts are kept as they are."""

import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from quadric import QuadraticLogisticRegression
from quadric.codegen import generate
from tests.support.generated_code import compile_c, run_javascript, run_python, run_sqlite

NASTY = [
    '"', "'", "*/", "/*", "//", "--", ";", "\n", "\r", "\\", "??/", "??'", "%s", "{0}", "{",
    "</script>", "<!--", "select", "SELECT 1;--", "\u2028", "\u202e", "é", "日本", "\U0001f600",
    "#", '"""', "'''", "\t", "$$", "`", "${x}", "label", "x_0", "valid", "\x1b", "\x7f",
    "\\u0041", "int", "return", " ", "main", "\f",
]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=4, alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
)
NAMES = st.lists(PIECES, min_size=1, max_size=5).map("".join).filter(bool)  # "" is refused


def model_with(columns, categories, classes):
    """A model with two columns of these names, the second with these categories."""
    frame = pd.DataFrame(
        {columns[0]: np.linspace(-1, 1, 12), columns[1]: np.resize(categories, 12)}
    )
    frame[columns[1]] = frame[columns[1]].astype(object)
    step = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), [columns[1]]), remainder="passthrough"
    )
    last = QuadraticLogisticRegression(C=0.1, max_iter=200)
    y = np.array([classes[int(v > 0)] for v in frame[columns[0]]], dtype=object)
    return make_pipeline(step, last).fit(frame, y), frame


def distinct(names):
    return len({name.lower() for name in names}) == len(names)


pairs = st.lists(NAMES, min_size=2, max_size=2).filter(distinct)


@settings(max_examples=12, deadline=None)
@given(pairs, pairs, pairs)
def test_no_name_becomes_code(columns, categories, classes):
    check_names(columns, categories, classes)


@pytest.mark.full
@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(pairs, pairs, pairs)
def test_no_name_becomes_code_thousands(columns, categories, classes):
    check_names(columns, categories, classes)


def check_names(columns, categories, classes):
    model, X = model_with(columns, categories, classes)
    labels = model.predict(X).tolist()
    assert run_python(generate(model, "python"), X)["label"] == labels
    text = generate(model, "javascript")
    assert "</" not in text.replace("*/", "")
    assert "<!--" not in text
    found = run_sqlite(generate(model, "sqlite", keep=["id"]), X, columns)
    place = found[0].index("label")
    assert [row[place] for row in found[1]] == labels
    for language in ("javascript", "c"):
        header = generate(model, language)
        code = header.split("*/", 1)[1]  # the first comment ends where it should
        assert code.lstrip().startswith(("#ifndef MODEL_H", "/** The names of the inputs"))
        assert "??" not in code if language == "c" else code.isascii()


@pytest.mark.slow
def test_names_in_c_and_javascript(tmp_path):
    """Every nasty piece as a column, a category and a class, in compilers and node."""
    for i, piece in enumerate(NASTY):
        columns, classes = [f"a{piece}", f"{piece}b"], [f"{piece}1", f"2{piece}"]
        model, X = model_with(columns, [piece, f"{piece}{piece}"], classes)
        labels = model.predict(X).tolist()
        if i % 6 == 0:
            found = run_javascript(generate(model, "javascript"), X, tmp_path)
            assert (found["label"], found["INPUTS"]) == (labels, columns)
            assert found["CLASSES"] == model.classes_.tolist()
        text = generate(model, "c")
        body = "(void)text; (void)z; puts(model_class(0)); puts(model_class(1));"
        if i % 6 == 0:
            program = compile_c(text, tmp_path, body, texts=False)
            done = subprocess.run([program], input=bytes(16), capture_output=True)
            assert done.stdout.decode() == "".join(f"{c}\n" for c in model.classes_)


@pytest.mark.parametrize("language", ["c", "sqlite"])
def test_names_that_a_language_cannot_represent_are_refused(language):
    for wrong, message in (("a\0b", "NUL"), ("\ud800", "UTF-8")):
        model, _ = model_with(["u", "v"], ["p", "q"], [wrong, "other"])
        with pytest.raises(ValueError, match=message):
            generate(model, language)


def test_columns_that_differ_only_in_case_are_refused_where_databases_ignore_case():
    model, _ = model_with(["a", "A"], ["p", "q"], ["r", "s"])
    with pytest.raises(ValueError, match="if case is ignored, as in sqlite"):
        generate(model, "sqlite")
    assert '"A"' in generate(model, "postgresql")
