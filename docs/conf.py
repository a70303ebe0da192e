"""Configuration of the documentation's site: ``make docs`` builds it into ``dist/docs``.

The parts of the reference that follow from the code are never written down: they are joined to their pages while Sphinx
reads them.
"""

from __future__ import annotations

import runpy
from pathlib import Path

from sphinx.application import Sphinx

from accelopt_profiling import __version__

ROOT = Path(__file__).parents[1]

project = "AccelOpt LSP"
release = version = __version__
root_doc = "README"
extensions = ["myst_parser"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
exclude_patterns = ["results/nkibench"]
html_theme = "furo"
html_title = f"AccelOpt LSP {release}"
html_show_copyright = False
suppress_warnings = ["misc.highlighting_failure"]  # blocks show parts of programs
#: The chapters of the menu, by folder.
CHAPTERS = {
    "tutorials": "Tutorials",
    "how-to": "How to",
    "reference": "Reference",
    "explanation": "Explanation",
    "results": "Results",
    "contributing": "Contributing",
}


def setup(app: Sphinx) -> None:
    pages = runpy.run_path(str(ROOT / "scripts/reference.py"))["PAGES"]

    def join(_: Sphinx, name: str, source: list[str]) -> None:
        if name in pages:
            source[0] += f"\n{pages[name]()}"
        if name == root_doc:
            source[0] += "".join(map(menu, CHAPTERS)) + "\n```{toctree}\n:hidden:\n\nglossary\n```\n"

    app.connect("source-read", join)


def menu(folder: str) -> str:
    """Return the directive that lists the pages of a folder in the menu."""
    return f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {CHAPTERS[folder]}\n\n{folder}/*\n```\n"
