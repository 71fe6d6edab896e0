"""Forged files whose content would grow in memory: counts that multiply.

Each function returns the bytes of a file with a valid hash. Most of them end in a linear regressor,
so that a file that is not refused loads as a working model.
"""

import copy
import functools

import numpy as np

from quadric import QuadraticRegressor
from quadric.files._describe import describe
from tests.support.forging.descriptions import RAW
from tests.support.forging.files import seal

__all__ = ["GROWTH"]

LONG = 100_000  # characters of a name
MANY = 1_500  # columns


# ---- descriptions --------------------------------------------------------------------------


@functools.cache
def _regressor():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = QuadraticRegressor((), layer_kinds="linear", alpha=0.1).fit(X, X[:, 0])
    return describe(model)


def regressor(n, tensors, names=None):
    """The description of a linear regressor with n inputs."""
    description, arrays = copy.deepcopy(_regressor())
    made = description["model"]
    tensors.update(arrays)
    tensors["layers.0.W"] = np.zeros((1, n))
    made["facts"]["network_"]["layers"][0]["inputs"] = n
    if names is not None:
        made["facts"]["feature_names_in_"] = texts(tensors, "names", names)
    return made


def fitted(name, facts, **parameters):
    return {"type": "fitted", "class": name, "parameters": parameters, "facts": facts}


def named(*items):
    return {"type": "tuple", "items": list(items)}


def array(tensors, name, values):
    values = np.asarray(values)
    tensors[name] = values
    return {"type": "array", "tensor": name, "dtype": values.dtype.name}


def texts(tensors, name, values):
    """An array of strings."""
    encoded = [value.encode() for value in values]
    tensors[name] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    tensors[f"{name}.lengths"] = np.array([len(text) for text in encoded], dtype=np.int64)
    return {"type": "array", "tensor": name, "dtype": "object", "others": []}


def identity(n, **facts):
    return fitted(
        "FunctionTransformer", {"n_features_in_": n, **facts}, feature_names_out="one-to-one"
    )


def columns(tensors, label, *parts, n=1, rest=(), facts=None, **parameters):
    """A ColumnTransformer of (name, step, indices)."""
    made = [
        named(name, step, slice_of(indices), array(tensors, f"{label}.{i}", np.asarray(indices)))
        for i, (name, step, indices) in enumerate(parts)
    ]
    remainder = named("drop", array(tensors, f"{label}.rest", np.array(rest, dtype=np.int64)))
    facts = {"transformers": made, "remainder": remainder, "sparse_output_": False, **(facts or {})}
    return fitted("ColumnTransformer", facts, **parameters)


def slice_of(indices):
    return {"type": "slice", "items": [int(indices[0]), int(indices[-1]) + 1, 1]}


def union(*steps, **parameters):
    listed = [named(f"{chr(97 + i % 26)}{i}", step) for i, step in enumerate(steps)]
    return fitted("FeatureUnion", {}, transformer_list=listed, **parameters)


def one_hot(tensors, label, categories, **facts):
    listed = [texts(tensors, f"{label}.{i}", values) for i, values in enumerate(categories)]
    return fitted("OneHotEncoder", {"categories_": listed, **facts}, dtype=FLOAT)


FLOAT = {"type": "scalar type", "name": "float64"}


def pipeline(*steps):
    return fitted("Pipeline", {}, steps=[named(f"s{i}", step) for i, step in enumerate(steps)])


def sealed(model, tensors, extra=None):
    versions = {"numpy": "2", "quadric": "0", "scikit-learn": "1"}
    return seal({"extra": extra or {}, "model": model, "versions": versions}, tensors)


# ---- names ---------------------------------------------------------------------------------

FORMAT = "{feature_name}" * 14


def nested_formats(levels=8, **options):
    """Each level repeats the names 14 times."""
    tensors, step = {}, identity(1)
    for level in range(levels):
        step = columns(
            tensors, f"c{level}", ("a", step, [0]), verbose_feature_names_out=FORMAT, **options
        )
    return sealed(pipeline(step, regressor(1, tensors, ["x"])), tensors)


def nested_formats_in_unions():
    step = identity(1)
    for _ in range(8):
        step = union(step, verbose_feature_names_out=FORMAT)
    tensors = {}
    return sealed(pipeline(step, regressor(1, tensors, ["x"])), tensors)


def nested_formats_for_a_table():
    """`predict` builds the names."""
    tensors, step = {}, identity(1)
    for level in range(8):
        output = {"output": "pandas"} if level == 7 else {}
        form = {"verbose_feature_names_out": FORMAT}
        step = columns(tensors, f"c{level}", ("a", step, [0]), facts=output, **form)
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def long_step_name(names=True):
    tensors = {}
    every = np.arange(MANY)
    step = columns(tensors, "c", ("a" * LONG, identity(MANY), every))
    names = [f"x{i}" for i in every] if names else None
    return sealed(pipeline(step, regressor(MANY, tensors, names)), tensors)


def long_column_name(names=True, **facts):
    tensors = {}
    column = {"feature_names_in_": texts(tensors, "column", ["\U0001f600" + "a" * LONG]), **facts}
    step = one_hot(tensors, "h", [sorted(str(i) for i in range(MANY))], **column)
    names = [f"x{i}" for i in range(MANY)] if names else None
    return sealed(pipeline(step, regressor(MANY, tensors, names)), tensors)


def long_column_name_for_a_table():
    """`predict` and `explain` build the names."""
    return long_column_name(names=False, output="pandas")


def long_column_name_after_a_step_without_names():
    """The pipeline does not know the number of its columns."""
    tensors = {}
    column = {"feature_names_in_": texts(tensors, "column", ["a" * LONG]), "output": "pandas"}
    step = one_hot(tensors, "h", [sorted(str(i) for i in range(MANY))], **column)
    return sealed(pipeline("passthrough", step, regressor(MANY, tensors)), tensors)


def long_names_before_a_projection():
    """The names are built and then dropped."""
    tensors = {}
    column = {"feature_names_in_": texts(tensors, "column", ["a" * LONG])}
    step = one_hot(tensors, "h", [sorted(str(i) for i in range(MANY))], **column)
    facts = {
        "components_": array(tensors, "p", np.eye(MANY)[:1]),
        "mean_": array(tensors, "m", np.zeros(MANY)),
        "noise_variance_": 0.0,
        "n_samples_": 10,
    }
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        facts[name] = array(tensors, name, np.ones(1))
    step = pipeline(step, fitted("PCA", facts))
    return sealed(pipeline(step, regressor(1, tensors, ["pca0"])), tensors)


def names_without_end():
    """Names for columns that exist only as a number."""
    tensors = {}
    step = pipeline(identity(2**40), identity(2**40))
    return sealed(pipeline(step, regressor(1, tensors, ["x"])), tensors)


# ---- columns -------------------------------------------------------------------------------


def repeated_unions(count=9, branches=8):
    """Each union repeats the columns; a ColumnTransformer tries its steps on a row of zeros."""
    tensors = {}
    unions = [union(identity(branches**i), *["passthrough"] * (branches - 1)) for i in range(count)]
    step = columns(tensors, "c", ("a", pipeline(*unions), [0]))
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def many_branches(n=20_000, count=1_000):
    tensors = {}
    step = union(identity(n), *["passthrough"] * count)
    step = columns(tensors, "c", ("a", step, range(n)))
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def many_columns(n=100_000):
    """The columns are given by a slice."""
    tensors = {}
    step = columns(tensors, "c", ("a", identity(n), range(n)))
    return sealed(pipeline(step, regressor(n, tensors)), tensors)


def many_dropped_columns(n=100_000):
    tensors = {}
    step = columns(tensors, "c", ("a", identity(1), [0]), ("b", "drop", range(1, n)))
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def many_named_columns(n=20_000):
    """Short names, for which Python needs the most memory."""
    tensors = {}
    names = [chr(256 + i) for i in range(n)]
    step = columns(tensors, "c", ("a", identity(n), range(n)))
    step["facts"]["feature_names_in_"] = texts(tensors, "columns", names)
    step["facts"]["transformers"][0]["items"][2] = texts(tensors, "given", names)
    return sealed(pipeline(step, regressor(n, tensors)), tensors)


def many_unselected_columns(n=400_000):
    """Each column takes one byte."""
    tensors = {}
    support = np.arange(n) == 0
    step = fitted("SelectedFeatures", {"support": array(tensors, "s", support)})
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def many_united_columns(n=400, count=1_000):
    tensors = {}
    several = union(identity(n), *["passthrough"] * (count - 1))
    support = np.arange(n * count) == 0
    step = fitted("SelectedFeatures", {"support": array(tensors, "s", support)})
    return sealed(pipeline(several, step, regressor(1, tensors)), tensors)


def many_bins(n=60_000):
    tensors = {}
    edges = [array(tensors, "e", np.arange(n + 1.0))]
    step = fitted("KBinsDiscretizer", {"bin_edges_": edges}, encode="onehot-dense", dtype=None)
    return sealed(pipeline(step, regressor(n, tensors)), tensors)


def many_categories(n=60_000):
    tensors = {}
    listed = [array(tensors, "h", np.arange(n))]
    step = fitted("OneHotEncoder", {"categories_": listed}, dtype=FLOAT)
    return sealed(pipeline(step, regressor(n, tensors)), tensors)


def equal_names(n=80_000):
    """The names are refused, but only after they have been decoded."""
    tensors = {}
    step = identity(n)
    step["facts"]["feature_names_in_"] = texts(tensors, "columns", ["\u0100"] * n)
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


# ---- steps ---------------------------------------------------------------------------------


def parameters_of_nested_steps(levels=10, n=60_000):
    """Copies of the parameters at every level."""
    tensors = {}
    step = fitted("OneHotEncoder", {"categories_": [array(tensors, "h", [0.0])]}, dtype=FLOAT)
    step["parameters"]["categories"] = [array(tensors, "given", np.arange(float(n)))]
    for level in range(levels):
        step = columns(tensors, f"c{level}", ("a", step, [0]))
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def many_nested_steps(levels=10, count=100):
    """Copies of the steps at every level."""
    tensors = {}
    step = union(*[identity(1) for _ in range(count)])
    for level in range(levels):
        step = columns(tensors, f"c{level}", ("a", step, [0]))
    return sealed(pipeline(step, regressor(count, tensors)), tensors)


def long_names_of_many_steps(count=500):
    """The parameters of all steps, listed with their long names."""
    tensors = {}
    inner = union(*[identity(1) for _ in range(count)])
    outer = fitted("FeatureUnion", {}, transformer_list=[named("a" * LONG, inner)])
    step = columns(tensors, "c", ("a", outer, [0]))
    step["facts"]["sparse_output_"] = True
    return sealed(pipeline(step, regressor(count, tensors)), tensors)


def long_names_of_nested_pipelines(levels=3, count=400):
    """The names of inner steps, each with the names of all steps around it."""
    tensors = {}
    step = pipeline(*[identity(1) for _ in range(count)])
    for _ in range(levels):
        step = fitted("Pipeline", {}, steps=[named("a" * 200, step)])
    extra = {"padding": "a" * 120_000}
    return sealed(pipeline(step, regressor(1, tensors)), tensors, extra)


def nested_pipelines(levels):
    """Pipelines inside each other, this many with the outermost one."""
    tensors, step = {}, identity(1)
    for _ in range(levels - 1):
        step = pipeline(step)
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


# ---- one long text among many: an array of text gives all of them the same length -----------

TEXTS = ["a" * 50_000, *(f"{i}" for i in range(2_000))]


def long_text_among_categories():
    tensors = {}
    step = fitted("OneHotEncoder", {"categories_": [array(tensors, "h", [0.0])]}, dtype=FLOAT)
    step["parameters"]["categories"] = [TEXTS]
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def long_text_among_columns():
    tensors, n = {}, len(TEXTS)
    step = columns(tensors, "c", ("a", identity(n), range(n)))
    step["facts"]["feature_names_in_"] = texts(tensors, "columns", TEXTS)
    step["facts"]["transformers"][0]["items"][2] = TEXTS
    return sealed(pipeline(step, regressor(n, tensors)), tensors)


def long_text_among_bins():
    tensors = {}
    edges = [array(tensors, "e", np.arange(3.0))]
    step = fitted("KBinsDiscretizer", {"bin_edges_": edges}, encode="ordinal", n_bins=TEXTS)
    return sealed(pipeline(step, regressor(1, tensors)), tensors)


def long_text_in_a_number():
    tensors = {}
    model = regressor(2, tensors)
    model["facts"]["best_loss_"] = {"type": "scalar", "dtype": "float64", "value": TEXTS}
    return sealed(model, tensors)


def long_text_among_kinds():
    tensors = {}
    model = regressor(2, tensors)
    model["parameters"]["layer_kinds"] = TEXTS
    return sealed(model, tensors)


# ---- messages ------------------------------------------------------------------------------


def numbers_in_a_parameter(name="activation"):
    """A message that lists them would be longer than the file."""
    tensors = {}
    model = regressor(2, tensors)
    model["parameters"][name] = [f"{RAW}1e15"] * 50_000
    model["facts"]["loss_curve_"] = array(tensors, "loss_curve_", np.zeros(20_000))
    return sealed(model, tensors)


def numbers_as_a_class():
    tensors = {}
    model = regressor(2, tensors)
    model["class"] = [f"{RAW}1e15"] * 50_000
    return sealed(model, tensors, extra={"padding": "a" * 150_000})


def a_long_type():
    tensors = {}
    model = regressor(2, tensors)
    model["type"] = "\U0001f600" + "a" * 1_000_000
    return sealed(model, tensors)


# ---- other -----------------------------------------------------------------------------------


def indices_of_many_steps(count=800, n=20_000):
    """In format 1, indices belong to names, and several steps could have the same name."""
    made = [named("a", "passthrough", [0]) for _ in range(count)]
    indices = {"type": "dict", "items": [["a", [7] * n]]}
    step = {
        "type": "estimator",
        "class": "ColumnTransformer",
        "parameters": {"transformers": made, "remainder": "drop"},
        "fitted": {
            "transformers_": made,
            "sparse_output_": False,
            "_transformer_to_input_indices": indices,
        },
    }
    extra = {"padding": "a" * 200_000}
    return seal({"extra": extra, "model": step, "versions": {}, "format": 1}, {})


def many_tensors(count=5_000):
    """Tensors without content that the model does not use."""
    tensors = {f"t{i}": np.zeros(0, dtype=np.uint8) for i in range(count)}
    model = regressor(2, tensors)
    model["facts"]["loss_curve_"] = array(tensors, "loss_curve_", np.zeros(50_000))
    return sealed(model, tensors)


GROWTH = {
    made.__name__: made
    for made in (
        nested_formats,
        nested_formats_in_unions,
        nested_formats_for_a_table,
        long_step_name,
        long_column_name,
        long_column_name_for_a_table,
        long_column_name_after_a_step_without_names,
        long_names_before_a_projection,
        names_without_end,
        repeated_unions,
        many_branches,
        many_columns,
        many_dropped_columns,
        many_named_columns,
        many_unselected_columns,
        many_united_columns,
        many_bins,
        many_categories,
        equal_names,
        parameters_of_nested_steps,
        many_nested_steps,
        long_names_of_many_steps,
        long_names_of_nested_pipelines,
        long_text_among_categories,
        long_text_among_columns,
        long_text_among_bins,
        long_text_in_a_number,
        long_text_among_kinds,
        numbers_in_a_parameter,
        numbers_as_a_class,
        a_long_type,
        indices_of_many_steps,
        many_tensors,
    )
}
