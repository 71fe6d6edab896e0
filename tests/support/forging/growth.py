"""Forged files whose content would grow in memory: counts that multiply.

Each function in `GROWTH` returns the bytes of a file with a valid hash. Most of them end in a
linear regressor, so that a file that is not refused loads as a working model. The descriptions of
the steps contain arrays, which `file` stores as tensors.
"""

import copy
import functools
from functools import partial

import numpy as np

from quadric import QuadraticRegressor
from quadric.files._describe import describe, encode_array
from tests.support.forging.files import seal
from tests.support.forging.mutations import RAW

# ---- files ---------------------------------------------------------------------------------


def file(*steps, n=1, names=None, extra=None, tensors=None, **changes):
    """Return a file with a linear regressor of n inputs, at the end of a pipeline of the steps.

    `tensors` are stored in addition. `changes` are those of the regressor's description.
    """
    description, arrays = _regressor()
    model = copy.deepcopy(description["model"])
    model["facts"]["network_"]["layers"][0]["inputs"] = n
    if names is not None:
        model["facts"]["feature_names_in_"] = texts(names)
    for part, new in changes.items():
        model[part] = model[part] | new if isinstance(new, dict) else new
    tensors = {**arrays, "layers.0.W": np.zeros((1, n)), **(tensors or {})}
    model = _without_arrays(pipeline(*steps, model) if steps else model, tensors)
    versions = {"numpy": "2", "quadric": "0", "scikit-learn": "1"}
    return seal({"extra": extra or {}, "model": model, "versions": versions}, tensors)


@functools.cache
def _regressor():
    X = np.random.default_rng(0).normal(size=(20, 2))
    return describe(QuadraticRegressor((), layer_kinds="linear", alpha=0.1).fit(X, X[:, 0]))


def _without_arrays(value, tensors):
    """Return the description with references to new tensors for its arrays."""
    if isinstance(value, np.ndarray):
        return encode_array(value, f"array{len(tensors)}", tensors, None)
    if isinstance(value, list):
        return [_without_arrays(inner, tensors) for inner in value]
    if isinstance(value, dict):
        return {key: _without_arrays(inner, tensors) for key, inner in value.items()}
    return value


# ---- steps ---------------------------------------------------------------------------------


def fitted(name, facts, **parameters):
    return {"type": "fitted", "class": name, "parameters": parameters, "facts": facts}


def named(*items):
    return {"type": "tuple", "items": list(items)}


def texts(values):
    return np.array(values, dtype=object)


def identity(n=1, **facts):
    facts["n_features_in_"] = n
    return fitted("FunctionTransformer", facts, feature_names_out="one-to-one")


def columns(*parts, facts=None, **parameters):
    """A ColumnTransformer of (name, step, indices), or of (name, step, indices, given columns)."""
    made = [
        named(
            name,
            step,
            *(given or [{"type": "slice", "items": [int(indices[0]), int(indices[-1]) + 1, 1]}]),
            np.asarray(indices),
        )
        for name, step, indices, *given in parts
    ]
    remainder = named("drop", np.array([], dtype=np.int64))
    facts = {"transformers": made, "remainder": remainder, "sparse_output_": False} | (facts or {})
    return fitted("ColumnTransformer", facts, **parameters)


def union(*steps, **parameters):
    listed = [named(f"{chr(97 + i % 26)}{i}", step) for i, step in enumerate(steps)]
    return fitted("FeatureUnion", {}, transformer_list=listed, **parameters)


def repeated(n, count):
    """A union of columns with copies of themselves."""
    return union(identity(n), *["passthrough"] * (count - 1))


def one_hot(categories, *, given=None, **facts):
    kind = {"type": "scalar type", "name": "float64"}
    parameters = {} if given is None else {"categories": [given]}
    return fitted("OneHotEncoder", {"categories_": [categories], **facts}, dtype=kind, **parameters)


def target_encoding(n, classes):
    """The encodings of n columns with one category each, for each of these classes."""
    facts = {
        "categories_": [np.zeros(1)] * n,
        "encodings_": [np.zeros(1)] * (n * len(classes)),
        "target_type_": "multiclass",
        "target_mean_": np.zeros(len(classes)),
        "classes_": texts(classes),
        "folds": named(None, 5, True, None),
    }
    return fitted("TargetEncoder", facts)


def declared(n):
    """A table of n columns with the same declaration, the first of which is selected."""
    facts = {
        "feature_names_in_": texts([f"{j:x}" for j in range(n)]),
        "declarations": [{"type": "dict", "items": [["kind", "number"], ["form", [".", "", ""]]]}],
        "declared_by": np.zeros(n, dtype=np.int64),
    }
    return fitted("TableColumns", facts)


def bins(count, **parameters):
    return fitted("KBinsDiscretizer", {"bin_edges_": [np.arange(count + 1.0)]}, **parameters)


def first_of(n):
    """A selection of the first of n columns."""
    return fitted("SelectedFeatures", {"support": np.arange(n) == 0})


def pipeline(*steps):
    return fitted("Pipeline", {}, steps=[named(f"s{i}", step) for i, step in enumerate(steps)])


def nested(levels, step, around):
    """Put `around` around a step this many times."""
    for _ in range(levels):
        step = around(step)
    return step


def in_columns(step, **parameters):
    return columns(("a", step, [0]), **parameters)


def nested_pipelines(levels):
    """A file with pipelines inside each other, this many with the outermost one."""
    return file(nested(levels - 1, identity(), pipeline))


# ---- the files -----------------------------------------------------------------------------

LONG = "a" * 100_000  # a name
MANY = 1_500  # columns
NAMES = [f"x{i}" for i in range(MANY)]
FORMAT = "{feature_name}" * 14  # repeats the names at every level
formatted = partial(in_columns, verbose_feature_names_out=FORMAT)
WORDS = texts(sorted(str(i) for i in range(MANY)))
LONG_NAME, WIDE_NAME = texts([f"a{LONG}"]), texts([f"\U0001f600{LONG}"])
PROJECTION = {
    **dict.fromkeys(
        ("explained_variance_", "explained_variance_ratio_", "singular_values_"), np.ones(1)
    ),
    "components_": np.eye(1, MANY),
    "mean_": np.zeros(MANY),
    "noise_variance_": 0.0,
    "n_samples_": 10,
}
SHORT = [chr(256 + i) for i in range(20_000)]  # names for which Python needs the most memory
# one long text among many: an array of text gives all of them the same length
TEXTS = [LONG[:50_000], *(f"{i}" for i in range(2_000))]
NUMBERS = [f"{RAW}1e15"] * 50_000  # a message that lists them would be longer than the file
CURVE = {"loss_curve_": {"type": "array", "tensor": "loss_curve_", "dtype": "float64"}}

GROWTH = {
    # names
    "nested_formats": partial(file, nested(8, identity(), formatted), names=["x"]),
    "nested_formats_in_unions": partial(
        file,
        nested(8, identity(), partial(union, verbose_feature_names_out=FORMAT)),
        names=["x"],
    ),
    "nested_formats_for_a_table": partial(  # `predict` builds the names
        file, formatted(nested(7, identity(), formatted), facts={"output": "pandas"})
    ),
    "long_step_name": partial(
        file, columns((LONG, identity(MANY), range(MANY))), n=MANY, names=NAMES
    ),
    "long_column_name": partial(
        file, one_hot(WORDS, feature_names_in_=WIDE_NAME), n=MANY, names=NAMES
    ),
    "long_column_name_for_a_table": partial(  # `predict` and `explain` build the names
        file, one_hot(WORDS, feature_names_in_=WIDE_NAME, output="pandas"), n=MANY
    ),
    "long_column_name_after_a_step_without_names": partial(  # the number of columns is not known
        file, "passthrough", one_hot(WORDS, feature_names_in_=LONG_NAME, output="pandas"), n=MANY
    ),
    "long_names_before_a_projection": partial(  # the names are built and then dropped
        file,
        pipeline(one_hot(WORDS, feature_names_in_=LONG_NAME), fitted("PCA", PROJECTION)),
        names=["pca0"],
    ),
    "long_class_in_the_names_of_encodings": partial(  # each column has a name for each class
        file, target_encoding(MANY, [LONG, f"{LONG}b", f"{LONG}c"]), n=3 * MANY, names=NAMES
    ),
    "names_without_end": partial(  # for columns that exist only as a number
        file, pipeline(identity(2**40), identity(2**40)), names=["x"]
    ),
    # columns; a ColumnTransformer tries its steps on a row of zeros
    "repeated_unions": partial(
        file, in_columns(pipeline(*[repeated(8**i, count=8) for i in range(9)]))
    ),
    "many_branches": partial(file, columns(("a", repeated(20_000, 1_001), range(20_000)))),
    "many_columns": partial(file, columns(("a", identity(10**5), range(10**5))), n=10**5),
    "many_dropped_columns": partial(
        file, columns(("a", identity(), [0]), ("b", "drop", range(1, 10**5)))
    ),
    "many_named_columns": partial(
        file,
        columns(
            ("a", identity(20_000), range(20_000), texts(SHORT)),
            facts={"feature_names_in_": texts(SHORT)},
        ),
        n=20_000,
    ),
    "many_unselected_columns": partial(file, first_of(400_000)),  # each takes one byte
    "many_united_columns": partial(file, repeated(400, count=1_000), first_of(400_000)),
    "many_declared_columns": partial(file, declared(2_000), first_of(2_000)),
    "too_many_declared_columns": partial(file, declared(20_000), first_of(20_000)),
    "many_bins": partial(file, bins(60_000, encode="onehot-dense", dtype=None), n=60_000),
    "many_categories": partial(file, one_hot(np.arange(60_000)), n=60_000),
    "equal_names": partial(  # refused, but only after they have been decoded
        file, identity(80_000, feature_names_in_=texts(["\u0100"] * 80_000))
    ),
    # steps: copies of parameters and of steps at every level, and the names of all steps
    "parameters_of_nested_steps": partial(
        file, nested(10, one_hot(np.zeros(1), given=np.arange(60_000.0)), in_columns)
    ),
    "many_nested_steps": partial(file, nested(10, union(*[identity()] * 100), in_columns), n=100),
    "long_names_of_many_steps": partial(
        file,
        in_columns(
            fitted("FeatureUnion", {}, transformer_list=[named(LONG, union(*[identity()] * 500))]),
            facts={"sparse_output_": True},
        ),
        n=500,
    ),
    "long_names_of_nested_pipelines": partial(
        file,
        nested(
            3,
            pipeline(*[identity()] * 400),
            lambda step: fitted("Pipeline", {}, steps=[named(LONG[:200], step)]),
        ),
        extra={"padding": LONG + LONG[:20_000]},
    ),
    "nested_pipelines": partial(nested_pipelines, 5),
    # long texts
    "long_text_among_categories": partial(file, one_hot(np.zeros(1), given=TEXTS)),
    "long_text_among_columns": partial(
        file,
        columns(
            ("a", identity(len(TEXTS)), range(len(TEXTS)), TEXTS),
            facts={"feature_names_in_": texts(TEXTS)},
        ),
        n=len(TEXTS),
    ),
    "long_text_among_bins": partial(file, bins(2, encode="ordinal", n_bins=TEXTS)),
    "long_text_in_a_number": partial(
        file, n=2, facts={"best_loss_": {"type": "scalar", "dtype": "float64", "value": TEXTS}}
    ),
    "long_text_among_kinds": partial(file, n=2, parameters={"layer_kinds": TEXTS}),
    # messages
    "numbers_in_a_parameter": partial(
        file,
        n=2,
        parameters={"activation": NUMBERS},
        facts=CURVE,
        tensors={"loss_curve_": np.zeros(20_000)},
    ),
    "numbers_as_a_class": partial(
        file, n=2, extra={"padding": LONG + LONG[:50_000]}, **{"class": NUMBERS}
    ),
    "a_long_type": partial(file, n=2, type=f"\U0001f600{LONG * 10}"),
    # tensors without content that the model does not use
    "many_tensors": partial(
        file,
        n=2,
        facts=CURVE,
        tensors={
            "loss_curve_": np.zeros(50_000),
            **{f"t{i}": np.zeros(0, dtype=np.uint8) for i in range(5_000)},
        },
    ),
}
