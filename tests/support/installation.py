"""Empty environments, what a user installs into them, and the Pythons of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
#: The CPU build of torch that the Makefile installs too.
TORCH = next(iter(re.findall(r"^TORCH := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)))

#: Seconds after which a command hangs: ten times what the longest of them takes.
_PATIENCE = 1800


def run(folder: Path, *command: object, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder`` with an environment that names no checkout, and an empty home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ACCELOPT", "XDG"))}
    environment |= {"HOME": str(home), "COLUMNS": "160"}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=_PATIENCE,
    )  # fmt: skip
    assert done.returncode == expected, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def empty_environment(folder: Path, python: Path = Path(sys.executable)) -> Path:
    """Make a virtual environment in ``folder``. Returns the folder of its programs."""
    run(folder, python, "-m", "venv", folder / "venv")
    return folder / "venv" / "bin"


def install(scripts: Path, *requirements: object) -> None:
    """Install with the pip of an environment. Python compiles what is imported, a tenth of torch."""
    pip = [
        scripts / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-compile",
    ]
    run(scripts.parents[1], *pip, *requirements)


def lowest_versions(wheel: Path, extra: str) -> dict[str, str]:
    """Return the lowest version that a wheel's metadata allows of each requirement, those of ``extra`` included."""
    archive = zipfile.ZipFile(wheel)
    metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    lowest: dict[str, str] = {}
    for line in HeaderParser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", []):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            bounds = [spec.version for spec in requirement.specifier if spec.operator in (">=", "==")]
            assert len(bounds) == 1, f"{line} has no lower bound"
            lowest[requirement.name] = bounds[0]
    return lowest


def pythons() -> dict[tuple[int, int], Path]:
    """Return the Pythons at hand by version: on the search path, and beside the one that runs the tests."""
    beside = Path(sys.base_prefix).parent.glob("3.*/bin/python3")
    on_path = [Path(folder, f"python3.{n}") for folder in os.get_exec_path() for n in range(10, 20)]
    at_hand: dict[tuple[int, int], Path] = {}
    for path in [*beside, *filter(Path.exists, on_path)]:
        print_version = "import sys; print(*sys.version_info[:2])"
        done = subprocess.run([path, "-c", print_version], capture_output=True, text=True)
        if done.returncode == 0:
            major, minor = map(int, done.stdout.split())
            at_hand.setdefault((major, minor), path)
    return at_hand
