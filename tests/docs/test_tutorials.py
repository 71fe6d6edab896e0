"""The notebooks of the tutorials are stored without outputs, run, and end with what to do next."""

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
NEEDS = {
    "04_quadratic_head_on_a_cnn": "torch",
    "05_reproduce_the_paper": "distributed",
    "06_fold_and_read_a_bilinear_mlp": "torch",
}
LINK = re.compile(r"\]\(([^)#]+)")
IMPORT = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def test_the_extra_docs_installs_what_notebooks_and_gallery_import():
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["docs"], *extras["cli"]]
    lines += [line for name in ("plot", "torch", "onnx", "dask") for line in extras[name]]
    installed = {re.split(r"[>\[]", line)[0] for line in lines} | {"quadric", "ipython"}
    sources = [cell.source for path in NOTEBOOKS for cell in read(path).cells]
    sources += [path.read_text("utf-8") for path in (DOCS / "gallery").glob("*.py")]
    known = packages_distributions()
    imported = {name for source in sources for name in IMPORT.findall(source)} & set(known)
    assert {"pandas", "sklearn"} <= imported
    missing = {name for name in imported if not installed & set(known[name])}
    assert missing == set()


def test_the_tutorials_are_numbered():
    assert len(NOTEBOOKS) >= 5
    assert [int(path.stem[:2]) for path in NOTEBOOKS] == list(range(1, len(NOTEBOOKS) + 1))


@every_notebook
def test_a_notebook_is_stored_without_outputs(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert cell.id
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@every_notebook
def test_a_notebook_is_a_lesson(path):
    cells = read(path).cells
    assert cells[0].source.startswith("# ")
    assert "## What to do next" in cells[-1].source
    in_a_row = 0
    for cell in cells:  # text comes before the code, at most two cells of code in a row
        in_a_row = in_a_row + 1 if cell.cell_type == "code" else 0
        assert in_a_row <= 2


@every_notebook
def test_links_lead_to_existing_pages(path):
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    targets = LINK.findall(text)
    assert targets
    for target in targets:
        page = path.parent / target
        # the page of a notebook has its name
        assert page.exists() or page.with_suffix(".ipynb") in NOTEBOOKS, target


@pytest.mark.full  # the build of the site runs them, too
@every_notebook
def test_a_notebook_runs(path, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    notebook = read(path)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    shown = [out for cell in code for out in cell.outputs if "image/png" in out.get("data", {})]
    assert shown
