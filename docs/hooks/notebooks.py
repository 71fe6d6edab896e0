"""Run the notebooks in docs/ and show them as pages.

The notebooks are stored without outputs. Each one runs in an empty temporary directory; an
exception in a cell stops the build. With `QUADRIC_DRAFT=1` in the environment they do not run.
"""

import base64
import os
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient

SETUP = "%matplotlib inline\n%config InlineBackend.rc = {'figure.dpi': 110}"
TIMEOUT = 600  # seconds for one cell
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page and its pictures for every notebook."""
    notebooks = [file for file in files if file.src_uri.endswith(".ipynb")]
    with ThreadPoolExecutor(2) as pool:
        texts = [file.content_string for file in notebooks]
        for file, run in zip(notebooks, pool.map(executed, texts), strict=True):
            name = file.src_uri.removesuffix(".ipynb")
            page, pictures = as_markdown(run, Path(name).name)
            files.append(File.generated(config, f"{name}.md", content=page))
            for picture, content in pictures.items():
                uri = f"{Path(name).parent.as_posix()}/{picture}"
                files.append(File.generated(config, uri, content=content))


def executed(text: str) -> Any:
    """Return a notebook with the outputs of its cells."""
    notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    if "QUADRIC_DRAFT" in os.environ:
        return notebook
    setup = nbformat.v4.new_code_cell(SETUP)  # type: ignore[no-untyped-call]
    notebook.cells.insert(0, setup)
    with tempfile.TemporaryDirectory() as directory:
        resources = {"metadata": {"path": directory}}
        options: dict[str, Any] = {
            "extra_arguments": ["--log-level=ERROR"],
            "resources": resources,
        }
        NotebookClient(notebook, timeout=TIMEOUT, **options).execute()
    del notebook.cells[0]
    return notebook


def as_markdown(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """Return the page of a notebook, and its pictures by file name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code" and cell.source.strip():
            parts.append(fenced("python", cell.source))
            for output in cell.outputs:
                data = output.get("data", {"text/plain": output.get("text", "")})
                if "image/png" in data:
                    picture = f"{name}_{len(pictures) + 1}.png"
                    pictures[picture] = base64.b64decode(data["image/png"])
                    parts.append(f"![Output of the cell above]({picture})")
                elif text := ESCAPES.sub("", data.get("text/plain", "")).rstrip():
                    parts.append(fenced("text", text))
    link = f"[Download this page as a notebook]({name}.ipynb){{ download }}"
    return "\n\n".join([*parts, f"---\n\n{link}\n"]), pictures


def fenced(language: str, text: str) -> str:
    """Return a code block, with a fence that does not occur in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
