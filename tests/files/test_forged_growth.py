"""Forged files whose content would grow in memory are refused, or load within the limit."""

import hashlib
import json
import struct
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer

from quadric import ModelFileError, Network, load, save
from quadric.files import _safetensors as container, info
from quadric.files._describe import describe
from quadric.files._safetensors import canonical
from quadric.models import Columns, Limits, operations, split
from quadric.models._supported_steps import name_lengths
from tests.support.fitted_models import CASES, fitted_case
from tests.support.forging import growth
from tests.support.memory import peak

MOST_MEMORY = 10  # times the file's size, as promised in docs/guide/model_files.md
SPARE = 2**19


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported(tmp_path_factory):
    path = tmp_path_factory.mktemp("growth") / "model"
    path.write_bytes(growth.file(growth.in_columns(growth.identity())))
    load(path)


LARGE = {"nested_formats", "names_without_end", "repeated_unions", "many_branches"}


@pytest.mark.parametrize("name", sorted(set(growth.GROWTH) - LARGE))
def test_faults_R1_a_forged_file_needs_memory_out_of_proportion(name, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(growth.GROWTH[name]())
    size, found = peak(lambda: load(path))
    assert size < MOST_MEMORY * path.stat().st_size + SPARE
    if not isinstance(found, ModelFileError):
        row = np.zeros((1, found.n_features_in_))
        if hasattr(found, "feature_names_in_"):
            row = pd.DataFrame(row, columns=found.feature_names_in_)
        with warnings.catch_warnings(action="ignore"):  # a category that is not known
            size, answer = peak(lambda: found.predict(row))
        assert np.isfinite(answer).all()
        assert size < 100 * path.stat().st_size + SPARE


LIMITED = """
import resource, sys
from quadric import ModelFileError, load
load(sys.argv[1])  # import everything
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, resource.RLIM_INFINITY))
for path in sys.argv[2:]:
    try:
        load(path)
    except ModelFileError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.unix
def test_faults_R1_names_or_columns_of_nested_steps_fill_the_memory(tmp_path):
    """In another process, because an unfixed version allocates gigabytes."""
    paths = [tmp_path / name for name in ("plain", *sorted(LARGE))]
    for path in paths:
        path.write_bytes(growth.GROWTH.get(path.name, growth.file)())
    command = [sys.executable, "-c", LIMITED, *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert len(result.stdout.splitlines()) == len(LARGE)
    assert "not enough memory" not in result.stdout


@pytest.mark.parametrize("form", ["{feature_name}{feature_name}", "{transformer_name}" * 2])
def test_faults_R1_a_format_repeats_a_name(form, tmp_path):
    step = growth.in_columns(growth.identity(), verbose_feature_names_out=form)
    (tmp_path / "model").write_bytes(growth.file(step))
    with pytest.raises(ModelFileError, match="each at most once"):
        load(tmp_path / "model")


def test_faults_R1_a_memory_error_is_not_a_model_file_error(network_file, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("quadric.files._describe.Network", fail)
    with pytest.raises(ModelFileError, match="not enough memory"):
        load(network_file)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_faults_R1_names_are_longer_than_computed(name):
    """The computed lengths bound those of scikit-learn's names."""
    model, _ = fitted_case(name)
    for _, step in split(model)[0]:
        if isinstance(step, FunctionTransformer):
            continue
        names = getattr(step, "feature_names_in_", [f"x{i}" for i in range(step.n_features_in_)])
        given = np.array([len(name) for name in names])
        found = name_lengths(operations(step), given, Limits.of_file(0))
        exact = [len(name) for name in step.get_feature_names_out(names)]
        assert len(found) == len(exact)
        assert (found >= exact).all()
        assert (found <= np.array(exact) + 40).all()


# ---- headers -------------------------------------------------------------------------------

N = 40_000


def header_file(extra, hidden=()):
    """A network in a file with this text as `extra`; `hidden` replaces characters in the header."""
    description, tensors = describe(Network.create(1, [("linear", 1, "identity")], rng=0))
    text = canonical({"format": container.FORMAT, **description}).replace(
        '"extra":{}', f'"extra":{extra}', 1
    )
    found = hashlib.sha256(struct.pack("<Q", len(text)) + text.encode())
    for name, array in sorted(tensors.items()):
        entry = canonical([name, "F64", list(array.shape)]).encode()
        found.update(struct.pack("<Q", len(entry)) + entry + array.tobytes())
    text = text.replace('"model":', f'"hash":"{found.hexdigest()}","model":', 1)
    content = container.to_bytes(description, tensors)
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    quoted = json.dumps(text)
    for plain, escaped in hidden:
        quoted = quoted.replace(plain, escaped)
    header["__metadata__"]["quadric"] = "HERE"
    made = json.dumps(header, separators=(",", ":")).replace('"HERE"', quoted).encode()
    return struct.pack("<Q", len(made)) + made + content[8 + length :]


def listed(items):
    return f'{{"a":[{",".join(items)}]}}'


ESCAPED = [("[", r"\u005b"), ("{", r"\u007b"), (":", r"\u003a")]
WIDE = r"\ud83d\ude00"
HEADERS = {
    "lists": lambda: header_file(listed(["[]"] * 150_000), ESCAPED[:1]),
    "dicts": lambda: header_file(listed(["{}"] * 150_000), ESCAPED),
    "quotes": lambda: header_file(listed(f'"{i:x}"' for i in range(N)), [(r"\"", r"\u0022")]),
    "a wide header": lambda: header_file(listed([f'"{"a" * 10**6}Z"']), [("Z", "\U0001f600")]),
    "a wide string": lambda: header_file(listed([f'"{"a" * 10**6}{WIDE}"'])),
    "wide strings": lambda: header_file(listed([r'"\u0100"'] * N)),
    "a wide string beside lists": lambda: header_file(
        listed([*["[]"] * 50_000, f'"{"a" * 10**6}\\"{WIDE}"'])
    ),
    "escaped keys": lambda: header_file(
        listed(["{" + ",".join(rf'"\u0061{i:x}":1000' for i in range(N)) + "}", f'"{"a" * 3 * N}"'])
    ),
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("reader", [load, info])
def test_faults_R3_a_header_hides_objects_or_has_wide_characters(reader, name, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(header_file("{}"))
    reader(path)
    path.write_bytes(HEADERS[name]())
    size, _ = peak(lambda: reader(path))
    assert size < MOST_MEMORY * path.stat().st_size + SPARE


def test_faults_R3_an_escaped_header_is_read(tmp_path):
    path = tmp_path / "model"
    for hidden in (ESCAPED, [("a", "\u00e4")], [("linear", r"line\u0061r")], [("1", r"\u0031")]):
        path.write_bytes(header_file('{"a":[[]]}', hidden))
        for reader in (load, info):
            with pytest.raises(ModelFileError, match="its header contains"):
                reader(path)


def test_faults_R3_text_that_needs_escapes_can_be_saved(tmp_path):
    """Such text is escaped in the description, which adds only backslashes to the header."""
    texts = ["\u00e4\u4e2d\U0001f600", '"', "\\", '\\"', "\n\t\x00\x7f", r"\u0041", "\\\\u0041"]
    extra = {"texts": texts, **dict.fromkeys(texts, 1)}
    path = tmp_path / "model"
    save(Network.create(1, [("linear", 1, "identity")], rng=0), path, extra=extra)
    assert info(path)["extra"] == extra
    load(path)


# ---- time ----------------------------------------------------------------------------------


class Named(list):
    """Names that must not be searched one by one."""

    def index(self, *_):
        raise AssertionError("a search through all names")


def test_faults_R6_each_column_is_searched_among_all_names():
    names = Named(f"c{i}" for i in range(20_000))
    columns = Columns(len(names), names)
    assert columns.indices(list(reversed(names))).tolist() == list(range(20_000))[::-1]
    assert columns.indices(slice("c3", "c5")).tolist() == [3, 4, 5]
    with pytest.raises(KeyError):
        columns.indices(["c20000"])


def test_faults_R6_saving_builds_the_text_of_every_inner_step(tmp_path, monkeypatch):
    model, _ = fitted_case("ColumnTransformer inside")
    seen = []
    monkeypatch.setattr(BaseEstimator, "__repr__", lambda self, *_: seen.append(self) or "")
    save(model, tmp_path / "model")
    assert not seen


def test_faults_R6_nested_pipelines_predict_three_times_slower_per_level(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(growth.nested_pipelines(5))
    assert np.isfinite(load(path).predict(np.zeros((2, 1)))).all()
    path.write_bytes(growth.nested_pipelines(6))
    with pytest.raises(ModelFileError, match="pipelines are nested more than 5 levels deep"):
        load(path)


# ---- tensors -------------------------------------------------------------------------------


def sparse_file(path, size, name):
    """A file that claims a tensor of this size, without taking space on disk."""
    content = growth.file(n=2, tensors={name: np.zeros(0)})
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    end = max(value["data_offsets"][1] for key, value in header.items() if key != "__metadata__")
    header[name] = {"dtype": "F64", "shape": [size // 8], "data_offsets": [end, end + size]}
    made = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(made)) + made + content[8 + length :])
        stream.truncate(8 + len(made) + end + size)


@pytest.mark.parametrize(("name", "problem"), [("z", "z is not used"), ("loss_curve_", "memory")])
def test_faults_R14_a_huge_tensor_is_read_before_it_is_refused(name, problem, tmp_path):
    path = tmp_path / "model"
    sparse_file(path, 8 * 2**40, name)
    size, found = peak(lambda: load(path))
    assert isinstance(found, ModelFileError)
    assert problem in str(found)
    assert size < 2**20


@pytest.mark.unix
def test_faults_R14_a_file_that_grows_is_read_to_its_end(network_file, monkeypatch):
    read = container._read_header

    def grow(stream, form):
        found = read(stream, form)
        with network_file.open("ab") as again:
            again.truncate(2**36)
        return found

    monkeypatch.setattr(container, "_read_header", grow)
    size, found = peak(lambda: load(network_file))
    assert "it changed while it was being read" in str(found)
    assert size < 2**20
