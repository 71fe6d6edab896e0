"""Commands accept any `extra` of a model file, or print a one-line error and exit with 1."""

import copy
import functools
import json
import random

import numpy as np
import polars as pl
import pytest
import typer
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import quadric
from quadric import Network, load, save
from quadric.apps.shell import app
from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, train
from quadric.files import _safetensors as container, info
from quadric.files._describe import describe

JUNK = (
    None,
    True,
    -1,
    0,
    7,
    1.5,
    -1e308,
    10**300,
    "",
    "x",
    "\x1b[31m\n",
    "category",
    [],
    {},
    [[]],
    [None],
    ["x", "x"],
    {"x": {"y": []}},
    [1, "a"],
    [{"name": "x"}],
    {"columns": 3},
    2**63,
)
COMMANDS = (
    "info",
    "info --json",
    "predict",
    "predict --proba",
    "explain",
    "explain --json",
    "plot",
)


@pytest.fixture(autouse=True)
def _one_command(monkeypatch):
    """Build the command once instead of for each of a thousand calls."""
    monkeypatch.setattr("typer.testing._get_command", functools.cache(typer.main.get_command))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Models with their `extra`: for numbers, for categories, and a bare network."""
    directory = tmp_path_factory.mktemp("extra")
    iris = load_iris()
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    frame = pl.DataFrame(dict(zip(names, iris.data.T, strict=True)))
    frame = frame.with_columns(species=pl.Series(iris.target_names[iris.target]))
    frame = frame.gather_every(3)
    frame.select("petal_length", "petal_width", "species").write_csv(directory / "numbers.csv")
    frame.with_columns(
        size=pl.when(pl.col("sepal_length") > 5.8).then(pl.lit("large")).otherwise(pl.lit("small"))
    ).write_csv(directory / "categories.csv")
    models = {}
    for name in ("numbers", "categories"):
        trained = train(open_table(directory / f"{name}.csv"), ColumnOptions("species"), Settings())
        extra = {"table": trained.schema.to_dict(), "report": trained.report}
        models[name] = trained.model, extra | {"data": f"{name}.csv"}
    network = Network.create(2, [("quadratic", 3, "softmax")], rng=0)
    extra = {"columns": names[2:], "classes": ["a", "b", "c"], "target": "species"}
    models["network"] = network, extra
    frame.select(names[2:]).write_csv(directory / "network.csv")
    return directory, models


def places(value, path=()):
    """Yield the paths of all values inside a JSON value."""
    yield path
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*path, key))


def changed(value, path, change):
    """Return a copy with `change(holder, key)` applied at a path."""
    copied = copy.deepcopy(value)
    at = copied
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return copied


def variants(extra):
    """Yield copies with one value replaced, removed, duplicated or copied to another key."""
    for path in places(extra):
        if not path:
            continue
        for junk in JUNK:
            yield changed(extra, path, lambda at, key, junk=junk: at.__setitem__(key, junk))
        yield changed(extra, path, lambda at, key: at.__delitem__(key))
        yield changed(extra, path, _add)


def _add(at, key):
    if isinstance(at, list):
        at.insert(key, copy.deepcopy(at[key]))
    else:
        at[f"{key} too"] = at[key]


def check(command, model, table, picture):
    name, *options = command.split()
    arguments = [name, str(model)]
    if name in ("predict", "explain", "plot"):
        arguments.append(str(table))
    if name == "plot":
        arguments += ["-o", str(picture)]
    result = CliRunner().invoke(app, [*arguments, *options])
    said = f"{command}: {result.exit_code} {result.stderr} {result.exception!r}"
    assert result.exception is None or isinstance(result.exception, SystemExit), said
    assert result.exit_code in (0, 1), said
    if result.exit_code == 1:
        lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1, said
        assert lines[0].startswith("error: "), said
        assert len(lines[0]) > 30, said
        assert not result.stdout, said
    elif options == ["--json"]:
        json.loads(result.stdout)
    return result.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, pytest.param(None, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ["numbers", "categories", "network"])
def test_extra_in_any_shape(name, count, place, tmp_path):
    directory, models = place
    model, extra = models[name]
    forged = list(variants(extra))
    rng = random.Random(f"{name} {count}")
    if count is not None:
        forged = rng.sample(forged, count)
    path, codes = tmp_path / "m.quadric", []
    description, tensors = describe(model, {})
    for k, one in enumerate(forged):
        path.write_bytes(container.to_bytes(description | {"extra": one}, tensors))
        # plots take a second, so only a few are drawn
        commands = COMMANDS if count is None else (rng.choice(COMMANDS[:-1]), "info")
        if count is not None and k % 50 == 0:
            commands = (*commands, "plot")
        for command in commands:
            if command == "plot" and count is None and k % 20:
                continue
            picture = tmp_path / "picture.png"
            codes.append(check(command, path, directory / f"{name}.csv", picture))
    assert 0 in codes
    assert 1 in codes


@pytest.mark.parametrize(
    "extra",
    [
        {"report": "good"},
        {"report": {"scores": "good"}},
        {"report": {"scores": {"mine": "good", "yours": None}}, "data": ["a.csv"]},
        {"report": 3, "table": "the one in the kitchen"},
        {"table": {"legs": 4}, "data": {"made": "by hand"}},
        {"table": None, "report": None, "data": None},
        {"columns": "all", "classes": 3, "target": ["x"]},
        {},
    ],
)
@pytest.mark.parametrize("name", ["numbers", "network"])
def test_unknown_entries_of_extra_are_ignored(name, extra, place, tmp_path):
    """`extra` can hold anything; fields that quadric does not know are ignored."""
    _, models = place
    path = tmp_path / "m.quadric"
    save(models[name][0], path, extra=extra)
    assert check("info", path, None, None) == 0
    assert check("info --json", path, None, None) == 0
    if name == "numbers":
        result = CliRunner().invoke(app, ["explain", str(path)])
        assert result.exit_code == 0, result.output
    output = str(tmp_path / "m.onnx")
    assert CliRunner().invoke(app, ["export", str(path), output]).exit_code == 0


@pytest.mark.slow
def test_a_table_of_another_model_is_refused(place, tmp_path):
    """Each part is valid, but together they would predict from the wrong columns."""
    directory, models = place
    (model, extra), other = models["numbers"], models["categories"][1]
    path, table = tmp_path / "m.quadric", directory / "numbers.csv"
    save(model, path, extra=extra)
    assert check("predict", path, table, None) == 0
    cases = [other]
    for edit in (
        lambda t: t["columns"]["name"].reverse(),
        lambda t: t["classes"].__setitem__(2, "zzz"),
        lambda t: (t["classes"].pop(), t["class_counts"].pop()),
        lambda t: t.update(task="regression", classes=[], class_counts=[]),
        lambda t: t["columns"].update(kind={"0": "category"}, categories={"0": ["a", "b"]}),
        lambda t: t["columns"]["name"].__setitem__(0, "other"),
    ):
        cases.append(copy.deepcopy(extra))
        edit(cases[-1]["table"])
    for case in cases:
        save(model, path, extra=case)
        for command in ("predict", "predict --proba", "explain"):
            result = CliRunner().invoke(app, [*command.split()[:1], str(path), str(table)])
            assert result.exit_code == 1, (case, result.output)
            assert "the table description in the model file" in result.stderr
            assert check(command, path, table, None) == 1


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.full)])
def test_info_of_forged_descriptions(count, place, tmp_path):
    """`info` reads the description without checking the model in it."""
    _, models = place
    model, extra = models["categories"]
    description, tensors = describe(model, extra)
    rng, path = random.Random(count), tmp_path / "m.quadric"
    where = [path for path in places(description) if len(path) > 1]
    codes = []
    for _ in range(count):
        one = description
        for place_ in rng.sample(where, rng.choice((1, 1, 3))):
            junk = rng.choice(JUNK)
            try:
                one = changed(one, place_, lambda at, key, junk=junk: at.__setitem__(key, junk))
            except (AttributeError, LookupError, TypeError):
                continue  # an earlier change has removed the place
        path.write_bytes(container.to_bytes(one, tensors))
        codes.append(check(rng.choice(("info", "info --json")), path, None, None))
    for junk in JUNK:
        path.write_bytes(container.to_bytes(description | {"model": junk}, tensors))
        codes.append(check("info", path, None, None))
        for field in ("extra", "versions"):
            path.write_bytes(container.to_bytes(description | {field: junk}, tensors))
            codes.append(check("info", path, None, None))
    assert {0, 1} == set(codes)


def test_info_of_a_valid_file_has_the_facts_of_training(place, tmp_path):
    _, models = place
    model, extra = models["numbers"]
    path = tmp_path / "m.quadric"
    save(model, path, extra=extra)
    facts = json.loads(CliRunner().invoke(app, ["info", str(path), "--json"]).stdout)
    assert facts["kind"] == "QuadraticClassifier"
    assert facts["classes"] == ["setosa", "versicolor", "virginica"]
    assert facts["columns"] == ["petal_length (number)", "petal_width (number)"]
    assert facts["scores"].keys() == {"this model", "most frequent class", "logistic regression"}
    assert facts["trained_on"] == "numbers.csv"
    assert facts["parameters"] == model[-1].network_.n_parameters
    assert facts["hash"] == info(path)["hash"]
    assert quadric.__version__ == facts["versions"]["quadric"]
    assert isinstance(load(path)[-1].predict(np.zeros((1, 2))), np.ndarray)
