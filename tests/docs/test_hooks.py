"""The hooks that generate pages of the site."""

import ast
import importlib
import inspect
import io
import pkgutil
import re
import warnings

import pytest

import quadric.errors
from quadric.apps.shell import app

pytest.importorskip("mkdocs", reason="needs the extra docs")

from docs.hooks import (
    command_line,
    defaults,
    gallery,
    mathematics,
    messages,
    navigation,
    notebooks,
    reference,
    repository_files,
)

nbformat = pytest.importorskip("nbformat")


# ---- reference --------------------------------------------------------------------------------


def public_names():
    """Yield module and name of every public name, found without the hook."""
    with warnings.catch_warnings(action="ignore"):
        for info in [None, *pkgutil.walk_packages(quadric.__path__, "quadric.")]:
            module = quadric if info is None else importlib.import_module(info.name)
            if any(part.startswith("_") for part in module.__name__.split(".")):
                continue
            for name in getattr(module, "__all__", ()):
                if not inspect.ismodule(getattr(module, name)) and name != "__version__":
                    yield module.__name__, name


def test_every_public_name_is_in_the_reference():
    pages = {module.__name__: reference.page(module) for module in reference.public_modules()}
    entries = {entry for text in pages.values() for entry in re.findall(r"^::: (\S+)", text, re.M)}
    documented = {}
    for entry in entries:
        module, _, name = entry.rpartition(".")
        documented.setdefault(name, []).append(getattr(importlib.import_module(module), name))
    names = list(public_names())
    assert ("quadric.geometry", "Quadric") in names
    for module, name in names:
        if module == "quadric.apps.shell":
            continue  # the command line has its own page
        value = getattr(importlib.import_module(module), name)
        assert any(value is other for other in documented.get(name, [])), (module, name)
        assert f"[`{name}`][" in pages[module]


def test_a_name_is_documented_once_where_it_is_defined():
    assert reference.home(quadric.Network, "Network") == "quadric.network"
    assert reference.home(quadric.ModelFileError, "ModelFileError") == "quadric.errors"
    assert "::: quadric.network.Network" not in reference.page(quadric)


@pytest.fixture(scope="module")
def package():
    """The package as mkdocstrings reads it."""
    griffe = pytest.importorskip("griffe")
    return griffe.load(
        "quadric",
        search_paths=["src"],
        docstring_parser="numpy",
        docstring_options={"warn_unknown_params": False},
        extensions=griffe.load_extensions(defaults.Defaults),
    )


def printed_defaults(entry):
    """Return the default that the reference prints for each parameter of an entry."""
    sections = entry.docstring.parsed if entry.docstring else []
    found = {}
    for section in sections:
        for parameter in section.value if section.kind.value == "parameters" else ():
            names = [name.lstrip("*") for name in parameter.name.split(", ")]
            shown = parameter.default and str(parameter.default)
            each = shown.split(", ") if shown and len(names) > 1 else [shown]
            found |= dict(zip(names, each * len(names) if len(each) == 1 else each, strict=True))
    return found


def types_of(entry):
    """Return the types that the reference prints, by the names of the entry's parameters."""
    (section,) = [one for one in entry.docstring.parsed if one.kind.value == "parameters"]
    return {parameter.name: str(parameter.annotation) for parameter in section.value}


@pytest.mark.slow
def test_the_reference_prints_the_types_of_the_docstrings(package):
    fit = types_of(package["network._network.Network.fit"])
    assert fit["X, Y"] == fit["loss"] == "array, array and str"
    assert fit["solver"] == "{'sgd', 'adam', 'lbfgs'}"
    assert fit["batch_size, epochs"] == "int"
    assert types_of(package["config.set_config"]) == {"max_memory": "int, str or None"}
    estimator = types_of(package["estimators._networks.QuadraticClassifier"])
    assert estimator["activation"].startswith("{'identity', 'logistic', 'tanh'")


def routines():
    """Yield all public classes and functions, and their public methods."""
    for module, name in public_names():
        value = getattr(importlib.import_module(module), name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        yield value
        for attribute in vars(value).values() if inspect.isclass(value) else ():
            method = getattr(attribute, "__func__", attribute)
            if inspect.isfunction(method) and not method.__name__.startswith("_"):
                yield method


@pytest.mark.slow
def test_the_reference_prints_the_defaults_of_the_signatures(package):
    compared = {}
    for value in routines():
        try:
            entry = package[f"{value.__module__}.{value.__qualname__}".removeprefix("quadric.")]
        except KeyError:
            continue  # created by a call, so without a page
        printed = printed_defaults(entry)
        parameters = inspect.signature(value).parameters if printed else {}
        for name in printed.keys() & parameters.keys():
            expected, shown = parameters[name].default, printed[name]
            if expected is inspect.Parameter.empty:
                assert shown is None, (entry.path, name)
            elif expected is None or isinstance(expected, str | bool | int | float | tuple):
                assert ast.literal_eval(shown) == expected, (entry.path, name)
            compared[entry.path, name] = shown
    estimator = "quadric.estimators._networks.QuadraticClassifier"
    assert compared[estimator, "activation"] == "'tanh'"
    assert compared[estimator, "beta_2"] == "0.999"
    assert compared["quadric.onnx._export.export", "opset"] == "17"  # a constant in the source
    assert len(compared) > 700


def test_the_command_line_reference_has_all_commands_and_options():
    text = "\n".join(map(command_line.section, command_line.commands()))
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert len(names) > 10
    for name in names:
        assert f"## quadric {name}\n" in text
    assert "## quadric data fetch\n" in text
    assert "| `-t, --target <str>` | **Required.** The column to predict. |" in text
    assert "| `--seed <int>` | Random seed. [default: 0; x&gt;=0] |" in text
    assert "quadric train iris.csv --target species" in text


# ---- errors and warnings ----------------------------------------------------------------------


def test_messages_are_read_from_the_source():
    source = """
def check(alpha):
    if alpha < 0:
        raise ValueError(
            f"alpha must be positive. Got {alpha!r} " + "instead."
        )
    warnings.warn(f"{len(x)} rows are empty.", UserWarning, stacklevel=2)
    raise error
    print("not a message")
"""
    assert sorted(messages.messages(source)) == [
        ("UserWarning", "<...> rows are empty."),
        ("ValueError", "alpha must be positive. Got <alpha> instead."),
    ]


def test_the_page_of_messages_has_all_error_classes_and_hundreds_of_messages():
    rows = [messages.class_row(getattr(quadric.errors, name)) for name in quadric.errors.__all__]
    assert "`ArithmeticError`, `ValueError`" in "".join(rows)
    text = messages.messages_by_package()
    assert text.count("\n- `ValueError`: ") > 100
    assert "Got &lt;value&gt; instead" in text


# ---- formulas ---------------------------------------------------------------------------------


def test_formulas_become_mathml():
    html = (
        r'<p><span class="arithmatex">\(a &lt; b\)</span></p>'
        r'<div class="arithmatex">\[x^\top Q x\]</div>'
    )
    converted = mathematics.with_mathml(html)
    assert "arithmatex" not in converted
    assert 'display="inline"' in converted
    assert '<div class="formula"><math' in converted
    assert "&lt;" in converted or "&#x0003C;" in converted


# ---- navigation and links ---------------------------------------------------------------------


def test_a_folder_in_the_navigation_stands_for_its_other_pages():
    nav = [{"Guides": ["g/index.md", "g/z.md", "g/*"]}, {"Home": "index.md"}]
    pages = ["index.md", "g/index.md", "g/a.md", "g/z.md", "g/b.md", "g/deeper/c.md"]
    expected = [{"Guides": ["g/index.md", "g/z.md", "g/a.md", "g/b.md"]}, {"Home": "index.md"}]
    assert navigation.expanded(nav, pages) == expected


def test_an_index_lists_the_titles_of_its_pages():
    texts = {"g/b.md": "# Second\n\ntext", "g/a.md": "---\nx: 1\n---\n\n# First\n"}
    assert navigation.listed(texts) == "- [Second](b.md)\n- [First](a.md)"


@pytest.mark.parametrize(
    ("name", "uri", "text", "expected"),
    [
        (
            "docs/guide/torch.md",
            "guide/torch.md",
            "[a](../../results/torch.md#x)",
            "[a](../results/torch.md#x)",
        ),
        ("docs/how_to/tune.md", "how_to/tune.md", "[a](../tour.md)", "[a](../tour.md)"),
        ("docs/tour.md", "tour.md", "[a](../CHANGELOG.md)", "[a](project/changelog.md)"),
        (
            "CONTRIBUTING.md",
            "project/contributing.md",
            "[a](docs/tour.md)",
            "[a](../tour.md)",
        ),
        ("docs/tour.md", "tour.md", "[a](https://a.org/b)", "[a](https://a.org/b)"),
        ("docs/tour.md", "tour.md", "[a](missing.md)", "[a](missing.md)"),
        ("results/studies.md", "results/studies.md", "[a](studies)", "a"),
    ],
)
def test_links_lead_to_the_pages_of_the_site(name, uri, text, expected):
    assert repository_files.adapted(text, name, uri) == expected


# ---- notebooks and gallery --------------------------------------------------------------------


def notebook(*sources):
    cells = [nbformat.v4.new_markdown_cell("# Title")]
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells))


@pytest.mark.slow
def test_a_notebook_becomes_a_page_with_outputs_and_pictures(monkeypatch):
    monkeypatch.delenv("QUADRIC_DRAFT", raising=False)
    drawing = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    run = notebooks.executed(notebook("print('printed')\n6 * 7", drawing))
    page, pictures = notebooks.as_markdown(run, "example")
    assert page.startswith(
        "# Title\n\n```python\nprint('printed')\n6 * 7\n```\n\n```text\nprinted\n"
    )
    assert "```text\n42\n```" in page
    assert "![Output of the cell above](example_1.png)" in page
    assert pictures["example_1.png"].startswith(b"\x89PNG")


@pytest.mark.slow
def test_an_exception_in_a_notebook_stops_the_build(monkeypatch):
    from nbclient.exceptions import CellExecutionError

    monkeypatch.delenv("QUADRIC_DRAFT", raising=False)
    with pytest.raises(CellExecutionError, match="wrong"):
        notebooks.executed(notebook("raise ValueError('wrong')"))


SCRIPT = '''"""A title.

A description.
"""

import matplotlib.pyplot as plt

plt.figure(figsize=(7, 4))
'''


def test_a_gallery_script_has_title_description_and_code():
    title, description, code = gallery.parts(SCRIPT)
    assert (title, description) == ("A title", "A description.")
    assert code.startswith("import matplotlib")
    with pytest.raises(ValueError, match="must begin with a docstring"):
        gallery.parts("x = 1")


def test_a_gallery_script_draws_one_picture(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.delenv("QUADRIC_DRAFT", raising=False)
    script = tmp_path / "example.py"
    script.write_text(SCRIPT)
    assert Image.open(io.BytesIO(gallery.drawn(script))).size == (1400, 800)
    script.write_text(SCRIPT + "plt.figure()\n")
    with pytest.raises(ValueError, match=r"example.py must make one figure. It makes 2."):
        gallery.drawn(script)
