"""Takes the README's picture in a real VS Code, dark and light: docs/images/editor-{dark,light}.png.

    python scripts/pictures.py

``make tools`` and ``make vsix`` must have run, and Chromium must be installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from workbench import NODE, ROOT, Workbench

IMAGES = ROOT / "docs/images"
TUTORIAL = ROOT / "docs/tutorials/triton.md"
THEMES = {"dark": "Default Dark Modern", "light": "Default Light Modern"}
SETTINGS = {
    "editor.fontSize": 13, "breadcrumbs.enabled": False, "workbench.activityBar.location": "hidden",
    "window.commandCenter": False, "workbench.layoutControl.enabled": False, "diffEditor.renderSideBySide": False,
    "diffEditor.codeLens": False, "editor.stickyScroll.enabled": False, "editor.lightbulb.enabled": "off",
    "window.menuBarVisibility": "hidden", "editor.guides.indentation": False, "editor.matchBrackets": "never",
    "editor.occurrencesHighlight": "off", "editor.renderLineHighlight": "none",
    "editor.inlayHints.maximumLength": 0,  # VS Code's own default cuts hints at 43 characters
}  # fmt: skip


def tutorial_file(name: str) -> str:
    """A file that the tutorial shows."""
    shown = re.search(rf"^```python {re.escape(name)}\n(.*?)^```", TUTORIAL.read_text("utf-8"), re.M | re.S)
    assert shown, name
    return shown[1]


def picture(theme: str, folder: Path) -> None:
    workspace = folder / "kernels"
    workspace.mkdir()
    for name in ("silu_and_mul.py", "silu_and_mul_problem.py"):
        (workspace / name).write_text(tutorial_file(name), encoding="utf-8")
    workbench = Workbench(
        folder / "data", workspace, environment={"ACCELOPT_DB": str(folder / "memory.db")},
        settings={**SETTINGS, "workbench.colorTheme": THEMES[theme]},
    )  # fmt: skip
    workbench.install_extension()
    workbench.start()
    try:
        script = ROOT / "tests/editor/vscode/picture.mjs"
        subprocess.run(
            [str(NODE), str(script), workbench.url, str(IMAGES), f"editor-{theme}"], check=True,
            env={**os.environ, "PLAYWRIGHT": str(ROOT / ".tools/playwright")},
        )  # fmt: skip
    finally:
        workbench.stop()


def main() -> None:
    for theme in THEMES:
        with tempfile.TemporaryDirectory() as folder:
            picture(theme, Path(folder))


if __name__ == "__main__":
    main()
