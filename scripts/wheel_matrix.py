"""Prints what works on which Python with which Triton, as the table of docs/results/installation.md.

    python scripts/wheel_matrix.py [PYTHON ...]      # 3.10 3.13, say; all at hand where none is named

Builds the wheel, installs it with torch into an empty environment for each Python at hand (3 to 6 GB where pip has only
CUDA's builds), and profiles README's two kernels there with each Triton.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.installation import ROOT, TORCH, empty_environment, install, pythons, run
from support.pages import blocks

TRITON = ["3.3.1", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0"]


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="accelopt-wheels-") as temporary:
        folder = Path(temporary)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
        subprocess.run(build, check=True)
        wheel = next(folder.glob("*.whl"))
        print("| Python | NKI |" + "".join(f" Triton {version} |" for version in TRITON))
        print("|---|---|" + "---|" * len(TRITON))
        for (major, minor), python in sorted(pythons().items()):
            name = f"{major}.{minor}"
            if (major, minor) >= (3, 10) and (name in names or not names):
                own = folder / name
                own.mkdir()
                cells = row(own, python, wheel)
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
                subprocess.run(["rm", "-rf", own], check=True)


def row(folder: Path, python: Path, wheel: Path) -> list[str]:
    """Return the cells of one Python: NKI before torch is there, then Triton in each version."""
    for block in blocks(ROOT / "README.md"):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    scripts = empty_environment(folder, python)
    install(scripts, wheel)
    cells = [cell(folder, scripts, "silu.py")]
    install(scripts, "--no-compile", f"torch=={TORCH}")
    for version in TRITON:
        try:
            install(scripts, "--only-binary", ":all:", "--no-deps", f"triton=={version}")
        except AssertionError as error:
            cells.append("no wheel" if "No matching distribution" in str(error) else "not installed")
            continue
        cells.append(cell(folder, scripts, "silu_and_mul.py"))
    return cells


def cell(folder: Path, scripts: Path, file: str) -> str:
    """Return the seconds of ``accelopt profile``, as a person waits for it, or the end of what was said instead."""
    started = time.monotonic()
    try:
        printed = run(folder, scripts / "accelopt", "profile", file).stdout
    except AssertionError as error:
        return " ".join(str(error).split())[-80:]
    seconds = time.monotonic() - started
    subprocess.run(["rm", "-rf", folder / "home"], check=True)  # with it the profile that was stored
    return f"{seconds:.1f} s" if re.search(r"\bpassed\b", printed) else "not checked"


if __name__ == "__main__":
    main(sys.argv[1:])
