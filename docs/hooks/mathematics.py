r"""Convert LaTeX to MathML when the site is built, so that browsers draw formulas without scripts.

`pymdownx.arithmatex` marks $...$ as \(...\) and $$...$$ as \[...\] in elements with a class.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the formulas of a page."""
    return with_mathml(content)


def with_mathml(content: str) -> str:
    r"""Return HTML with MathML instead of LaTeX.

    >>> with_mathml(r'<span class="arithmatex">\(a\)</span>').partition("display")[2]
    '="inline"><mrow><mi>a</mi></mrow></math>'
    """

    def replace(match: re.Match[str]) -> str:
        latex = html.unescape(match["latex"]).strip()
        if match["tag"] == "span":
            return convert(latex, display="inline")
        return f'<div class="formula">{convert(latex, display="block")}</div>'

    return FORMULA.sub(replace, content)
