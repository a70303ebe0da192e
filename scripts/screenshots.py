"""Take the page of screenshots in a real VS Code: six kernels of others, dark and light, at two widths.

    python scripts/screenshots.py CHECKOUTS OUT [--theme dark] [--width 1440]

CHECKOUTS holds a checkout ``OWNER+NAME`` of each repository that ``screenshots.json`` names. OUT gets the pictures,
``THEME-WIDTH/NAME.png``, and ``index.html``, which shows each scene in all of them side by side. ``make tools`` and
``make vsix`` must have run, and Chromium must be installed.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from workbench import NODE, ROOT, Workbench

STEPS = ROOT / "tests/editor/vscode"
THEMES = {"dark": "Default Dark Modern", "light": "Default Light Modern"}
WIDTHS = (1440, 1000)
ABOUT: dict[str, Any] = json.loads((ROOT / "scripts/screenshots.json").read_text("utf-8"))


def workspace_of(checkouts: Path, workspace: Path) -> None:
    """Copy the packages that the kernels stand in, so that their imports are found."""
    for kernel in [*ABOUT["kernels"], ABOUT["searched"]]:
        package = checkouts / kernel["repository"].replace("/", "+") / kernel["root"] / kernel["package"]
        if not package.is_dir():
            sys.exit(f"{package} is missing: check out {kernel['repository']} at {kernel['commit']} there")
        shutil.copytree(package, workspace / kernel["package"], dirs_exist_ok=True)


def take(script: str, workbench: Workbench, out: Path, *arguments: str) -> None:
    workbench.install_extension()
    workbench.start()
    try:
        environment = {**os.environ, "PLAYWRIGHT": str(ROOT / ".tools/playwright")}
        command = [str(NODE), str(STEPS / script), workbench.url, str(out), *arguments]
        subprocess.run(command, check=True, env=environment)
    finally:
        workbench.stop()


def profiled_once(workspace: Path, database: Path) -> None:
    """Profile the kernels, so that each set of pictures begins with what the memory has of them."""
    for kernel in [*ABOUT["kernels"], ABOUT["searched"]]:
        command = [sys.executable, "-m", "accelopt_lsp", "profile", str(workspace / kernel["path"])]
        subprocess.run(command, env={**os.environ, "ACCELOPT_DB": str(database)}, stdout=subprocess.DEVNULL)


def pictures(theme: str, width: int, workspace: Path, out: Path, profiles: Path) -> None:
    """Take all scenes in one theme at one width."""
    settings: dict[str, object] = {"workbench.colorTheme": THEMES[theme]}
    kernels = [{"file": one["path"], "kernel": one["kernel"]} for one in ABOUT["kernels"]]
    searched = {"file": ABOUT["searched"]["path"], "kernel": ABOUT["searched"]["kernel"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = Path(shutil.copy(profiles, folder / "memory.db"))
        memory = {"ACCELOPT_DB": str(database), "ACCELOPT_CONFIG": str(folder / "none")}
        machine = {"accelopt.search.candidates": 14}
        seen = Workbench(folder / "data", workspace, settings=settings, machine=machine, environment=memory)
        take("screenshots.mjs", seen, out, str(width), json.dumps(kernels), json.dumps(searched))
        bare = folder / "bare"
        bare.mkdir()
        shutil.copy(workspace / ABOUT["kernels"][-1]["path"], bare)
        (folder / "bin").mkdir()
        (folder / "bin/python3").symlink_to(sys._base_executable)
        without = {
            **memory, "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "XDG_DATA_HOME": str(folder / "home"),
            "VIRTUAL_ENV": "", "CONDA_PREFIX": "",
        }  # fmt: skip
        first = Workbench(
            folder / "data2",
            bare,
            settings=settings,
            machine={"accelopt.interpreter": ""},
            environment=without,
        )
        take("screenshots_first_run.mjs", first, out, str(width), Path(ABOUT["kernels"][-1]["path"]).name)


def index(out: Path) -> None:
    """Write the page that shows each scene in all themes and widths."""
    folders = sorted(folder.name for folder in out.iterdir() if folder.is_dir())
    scenes = sorted({picture.name for folder in folders for picture in (out / folder).glob("*.png")})
    rows = [
        f"<h2>{html.escape(scene[:-4])}</h2>"
        + "".join(f'<img alt="{html.escape(f)}" src="{f}/{scene}" width="48%">' for f in folders)
        for scene in scenes
    ]
    (out / "index.html").write_text("<!doctype html><title>AccelOpt in VS Code</title>" + "\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--theme", choices=THEMES, action="append")
    parser.add_argument("--width", type=int, action="append")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        workspace, profiles = Path(name) / "kernels", Path(name) / "memory.db"
        workspace.mkdir()
        workspace_of(chosen.checkouts.resolve(), workspace)
        profiled_once(workspace, profiles)
        for theme in chosen.theme or THEMES:
            for width in chosen.width or WIDTHS:
                out = chosen.out / f"{theme}-{width}"
                out.mkdir(parents=True, exist_ok=True)
                workspace_of(chosen.checkouts.resolve(), workspace)  # what an edit left is gone
                pictures(theme, width, workspace, out.resolve(), profiles)
    index(chosen.out)


if __name__ == "__main__":
    main()
