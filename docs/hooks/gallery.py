"""Run the scripts in docs/gallery/ and show their pictures with the code.

The docstring of a script is the title, an empty line and a description. Its code makes one
matplotlib figure. The first word of its name is its topic. With `QUADRIC_DRAFT=1` in the
environment, the pictures are empty.
"""

import ast
import io
import os
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

WIDTH = 1400  # pixels of a picture
BREAK = "\n\n"
DRAFT = "import matplotlib.pyplot as plt\nplt.figure()"
INTRODUCTION = """# Gallery

Pictures made with quadric. Click on a picture for its code.
"""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page and a picture for every script, and the page with all pictures."""
    scripts = sorted((Path(config.docs_dir) / "gallery").glob("*.py"))
    topics: dict[str, list[str]] = {}
    for script in scripts:
        title, description, code = parts(script.read_text(encoding="utf-8"))
        page = (
            f"# {title}\n\n{description}\n\n![{title}]({script.stem}.png)\n\n```python\n{code}```\n"
        )
        files.append(File.generated(config, f"gallery/{script.stem}.md", content=page))
        files.append(File.generated(config, f"gallery/{script.stem}.png", content=drawn(script)))
        entry = f"[![]({script.stem}.png) {title}]({script.stem}.md)"
        topics.setdefault(script.stem.partition("_")[0].capitalize(), []).append(entry)
    groups = [
        f'## {topic}\n\n<div class="gallery" markdown>\n\n{BREAK.join(entries)}\n\n</div>\n'
        for topic, entries in topics.items()
    ]
    content = "\n".join([INTRODUCTION, *groups])
    files.append(File.generated(config, "gallery/index.md", content=content))


def parts(source: str) -> tuple[str, str, str]:
    """Split a script into the title and the description of its docstring, and its code."""
    tree = ast.parse(source)
    title, _, description = (ast.get_docstring(tree) or "").partition("\n")
    if not title:
        raise ValueError("A gallery script must begin with a docstring: title, description.")
    lines = source.splitlines(keepends=True)
    return (
        title.rstrip("."),
        description.strip(),
        "".join(lines[tree.body[0].end_lineno :]).lstrip(),
    )


def drawn(script: Path) -> bytes:
    """Run a script in an empty directory and return its figure as PNG."""
    plt.close("all")
    plt.switch_backend("Agg")
    source = DRAFT if "QUADRIC_DRAFT" in os.environ else script.read_text(encoding="utf-8")
    scope = {"__name__": "__main__", "__file__": str(script)}
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as directory, plt.rc_context():
        os.chdir(directory)
        try:
            with warnings.catch_warnings():
                # plt.show() does nothing without a screen
                warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
                exec(compile(source, script, "exec"), scope)
        finally:
            os.chdir(before)
        if len(plt.get_fignums()) != 1:
            found = len(plt.get_fignums())
            raise ValueError(f"{script.name} must make one figure. It makes {found}.")
        figure = plt.gcf()
        picture = io.BytesIO()
        figure.savefig(picture, dpi=WIDTH / figure.get_figwidth(), facecolor="white")
        plt.close(figure)
    return picture.getvalue()
