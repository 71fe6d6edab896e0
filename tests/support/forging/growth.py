"""Forged files whose content would grow in memory: counts that multiply.

Each function in `GROWTH` returns the bytes of a file with a valid hash. Most of them end in a
linear regressor, so that a file that is not refused loads as a working model.
"""

import copy
import functools

import numpy as np

from quadric import QuadraticRegressor
from quadric.files._describe import describe
from tests.support.forging.descriptions import RAW
from tests.support.forging.files import seal

LONG = 100_000  # characters of a name
MANY = 1_500  # columns


GROWTH = {}


def growing(make):
    """List a function that returns a description; the listed one returns the file.

    The function receives the tensors, to which it adds. It may also return what the file contains
    in addition to the model.
    """

    @functools.wraps(make)
    def file(*arguments, **options):
        tensors = {}
        made = make(tensors, *arguments, **options)
        return sealed(made[0], tensors, made[1]) if type(made) is tuple else sealed(made, tensors)

    GROWTH[make.__name__] = file
    return file


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


@growing
def nested_formats(tensors, levels=8, names=("x",), output=None):
    """Each level repeats the names 14 times."""
    step = identity(1)
    for level in range(levels):
        step = columns(tensors, f"c{level}", ("a", step, [0]), verbose_feature_names_out=FORMAT)
    if output is not None:
        step["facts"]["output"] = output
    return pipeline(step, regressor(1, tensors, names))


@growing
def nested_formats_in_unions(tensors):
    step = identity(1)
    for _ in range(8):
        step = union(step, verbose_feature_names_out=FORMAT)
    return pipeline(step, regressor(1, tensors, ["x"]))


@growing
def nested_formats_for_a_table(tensors):
    """`predict` builds the names."""
    return nested_formats.__wrapped__(tensors, names=None, output="pandas")


@growing
def long_step_name(tensors):
    every = np.arange(MANY)
    step = columns(tensors, "c", ("a" * LONG, identity(MANY), every))
    return pipeline(step, regressor(MANY, tensors, [f"x{i}" for i in every]))


def encoder_of_a_long_name(tensors, first="a", **facts):
    facts["feature_names_in_"] = texts(tensors, "column", [first + "a" * LONG])
    return one_hot(tensors, "h", [sorted(str(i) for i in range(MANY))], **facts)


@growing
def long_column_name(tensors):
    step = encoder_of_a_long_name(tensors, "\U0001f600")
    return pipeline(step, regressor(MANY, tensors, [f"x{i}" for i in range(MANY)]))


@growing
def long_column_name_for_a_table(tensors):
    """`predict` and `explain` build the names."""
    step = encoder_of_a_long_name(tensors, "\U0001f600", output="pandas")
    return pipeline(step, regressor(MANY, tensors))


@growing
def long_column_name_after_a_step_without_names(tensors):
    """The pipeline does not know the number of its columns."""
    step = encoder_of_a_long_name(tensors, output="pandas")
    return pipeline("passthrough", step, regressor(MANY, tensors))


@growing
def long_names_before_a_projection(tensors):
    """The names are built and then dropped."""
    scalars = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
    facts = {name: array(tensors, name, np.ones(1)) for name in scalars}
    facts["components_"] = array(tensors, "p", np.eye(MANY)[:1])
    facts["mean_"] = array(tensors, "m", np.zeros(MANY))
    facts |= {"noise_variance_": 0.0, "n_samples_": 10}
    step = pipeline(encoder_of_a_long_name(tensors), fitted("PCA", facts))
    return pipeline(step, regressor(1, tensors, ["pca0"]))


@growing
def names_without_end(tensors):
    """Names for columns that exist only as a number."""
    step = pipeline(identity(2**40), identity(2**40))
    return pipeline(step, regressor(1, tensors, ["x"]))


# ---- columns -------------------------------------------------------------------------------


@growing
def repeated_unions(tensors, count=9, branches=8):
    """Each union repeats the columns; a ColumnTransformer tries its steps on a row of zeros."""
    unions = [union(identity(branches**i), *["passthrough"] * (branches - 1)) for i in range(count)]
    step = columns(tensors, "c", ("a", pipeline(*unions), [0]))
    return pipeline(step, regressor(1, tensors))


@growing
def many_branches(tensors, n=20_000, count=1_000):
    step = union(identity(n), *["passthrough"] * count)
    step = columns(tensors, "c", ("a", step, range(n)))
    return pipeline(step, regressor(1, tensors))


@growing
def many_columns(tensors, n=100_000):
    """The columns are given by a slice."""
    step = columns(tensors, "c", ("a", identity(n), range(n)))
    return pipeline(step, regressor(n, tensors))


@growing
def many_dropped_columns(tensors, n=100_000):
    step = columns(tensors, "c", ("a", identity(1), [0]), ("b", "drop", range(1, n)))
    return pipeline(step, regressor(1, tensors))


@growing
def many_named_columns(tensors, n=20_000):
    """Short names, for which Python needs the most memory."""
    names = [chr(256 + i) for i in range(n)]
    step = columns(tensors, "c", ("a", identity(n), range(n)))
    step["facts"]["feature_names_in_"] = texts(tensors, "columns", names)
    step["facts"]["transformers"][0]["items"][2] = texts(tensors, "given", names)
    return pipeline(step, regressor(n, tensors))


@growing
def many_unselected_columns(tensors, n=400_000):
    """Each column takes one byte."""
    support = np.arange(n) == 0
    step = fitted("SelectedFeatures", {"support": array(tensors, "s", support)})
    return pipeline(step, regressor(1, tensors))


@growing
def many_united_columns(tensors, n=400, count=1_000):
    several = union(identity(n), *["passthrough"] * (count - 1))
    support = np.arange(n * count) == 0
    step = fitted("SelectedFeatures", {"support": array(tensors, "s", support)})
    return pipeline(several, step, regressor(1, tensors))


@growing
def many_bins(tensors, n=60_000):
    edges = [array(tensors, "e", np.arange(n + 1.0))]
    step = fitted("KBinsDiscretizer", {"bin_edges_": edges}, encode="onehot-dense", dtype=None)
    return pipeline(step, regressor(n, tensors))


@growing
def many_categories(tensors, n=60_000):
    listed = [array(tensors, "h", np.arange(n))]
    step = fitted("OneHotEncoder", {"categories_": listed}, dtype=FLOAT)
    return pipeline(step, regressor(n, tensors))


@growing
def equal_names(tensors, n=80_000):
    """The names are refused, but only after they have been decoded."""
    step = identity(n)
    step["facts"]["feature_names_in_"] = texts(tensors, "columns", ["\u0100"] * n)
    return pipeline(step, regressor(1, tensors))


# ---- steps ---------------------------------------------------------------------------------


@growing
def parameters_of_nested_steps(tensors, levels=10, n=60_000):
    """Copies of the parameters at every level."""
    step = fitted("OneHotEncoder", {"categories_": [array(tensors, "h", [0.0])]}, dtype=FLOAT)
    step["parameters"]["categories"] = [array(tensors, "given", np.arange(float(n)))]
    for level in range(levels):
        step = columns(tensors, f"c{level}", ("a", step, [0]))
    return pipeline(step, regressor(1, tensors))


@growing
def many_nested_steps(tensors, levels=10, count=100):
    """Copies of the steps at every level."""
    step = union(*[identity(1) for _ in range(count)])
    for level in range(levels):
        step = columns(tensors, f"c{level}", ("a", step, [0]))
    return pipeline(step, regressor(count, tensors))


@growing
def long_names_of_many_steps(tensors, count=500):
    """The parameters of all steps, listed with their long names."""
    inner = union(*[identity(1) for _ in range(count)])
    outer = fitted("FeatureUnion", {}, transformer_list=[named("a" * LONG, inner)])
    step = columns(tensors, "c", ("a", outer, [0]))
    step["facts"]["sparse_output_"] = True
    return pipeline(step, regressor(count, tensors))


@growing
def long_names_of_nested_pipelines(tensors, levels=3, count=400):
    """The names of inner steps, each with the names of all steps around it."""
    step = pipeline(*[identity(1) for _ in range(count)])
    for _ in range(levels):
        step = fitted("Pipeline", {}, steps=[named("a" * 200, step)])
    extra = {"padding": "a" * 120_000}
    return pipeline(step, regressor(1, tensors)), extra


@growing
def nested_pipelines(tensors, levels=5):
    """Pipelines inside each other, this many with the outermost one."""
    step = identity(1)
    for _ in range(levels - 1):
        step = pipeline(step)
    return pipeline(step, regressor(1, tensors))


# ---- one long text among many: an array of text gives all of them the same length -----------

TEXTS = ["a" * 50_000, *(f"{i}" for i in range(2_000))]


@growing
def long_text_among_categories(tensors):
    step = fitted("OneHotEncoder", {"categories_": [array(tensors, "h", [0.0])]}, dtype=FLOAT)
    step["parameters"]["categories"] = [TEXTS]
    return pipeline(step, regressor(1, tensors))


@growing
def long_text_among_columns(tensors):
    n = len(TEXTS)
    step = columns(tensors, "c", ("a", identity(n), range(n)))
    step["facts"]["feature_names_in_"] = texts(tensors, "columns", TEXTS)
    step["facts"]["transformers"][0]["items"][2] = TEXTS
    return pipeline(step, regressor(n, tensors))


@growing
def long_text_among_bins(tensors):
    edges = [array(tensors, "e", np.arange(3.0))]
    step = fitted("KBinsDiscretizer", {"bin_edges_": edges}, encode="ordinal", n_bins=TEXTS)
    return pipeline(step, regressor(1, tensors))


@growing
def long_text_in_a_number(tensors):
    model = regressor(2, tensors)
    model["facts"]["best_loss_"] = {"type": "scalar", "dtype": "float64", "value": TEXTS}
    return model


@growing
def long_text_among_kinds(tensors):
    model = regressor(2, tensors)
    model["parameters"]["layer_kinds"] = TEXTS
    return model


# ---- messages ------------------------------------------------------------------------------


@growing
def numbers_in_a_parameter(tensors, name="activation"):
    """A message that lists them would be longer than the file."""
    model = regressor(2, tensors)
    model["parameters"][name] = [f"{RAW}1e15"] * 50_000
    model["facts"]["loss_curve_"] = array(tensors, "loss_curve_", np.zeros(20_000))
    return model


@growing
def numbers_as_a_class(tensors):
    model = regressor(2, tensors)
    model["class"] = [f"{RAW}1e15"] * 50_000
    return model, {"padding": "a" * 150_000}


@growing
def a_long_type(tensors):
    model = regressor(2, tensors)
    model["type"] = "\U0001f600" + "a" * 1_000_000
    return model


# ---- other -----------------------------------------------------------------------------------


@growing
def many_tensors(tensors, count=5_000):
    """Tensors without content that the model does not use."""
    tensors.update((f"t{i}", np.zeros(0, dtype=np.uint8)) for i in range(count))
    model = regressor(2, tensors)
    model["facts"]["loss_curve_"] = array(tensors, "loss_curve_", np.zeros(50_000))
    return model
