"""The folders of ``accelopt_profiling.nki`` are layers: a file imports only what lies below it."""

from __future__ import annotations

import ast
from pathlib import Path

import accelopt_profiling.nki

PACKAGE = "accelopt_profiling.nki"
FOLDER = Path(accelopt_profiling.nki.__file__).parent
#: Each folder with the folders that it may import from, besides itself.
BELOW: dict[str, set[str]] = {
    "operations": set(),
    "data": set(),
    "compute": {"data"},
    "emulator": {"data", "compute"},
    "instructions": {"data", "compute", "emulator", "operations"},
    "frontend": {"data", "compute", "emulator", "instructions", "operations"},
    "replay": {"data", "compute", "emulator", "frontend"},
    "beta1": {"data", "compute", "emulator", "instructions", "frontend", "replay", "operations"},
    "current": {"data", "compute", "emulator", "instructions", "frontend", "replay", "operations"},
    "time_model": {"data", "compute", "operations"},
}


def imported_folders(path: Path) -> set[str]:
    """The folders of the package that a file imports from, inside functions and for types as well."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE}."):
            names.add(node.module.removeprefix(f"{PACKAGE}.").partition(".")[0])
        elif isinstance(node, ast.Import):
            names.update(
                alias.name.removeprefix(f"{PACKAGE}.").partition(".")[0]
                for alias in node.names
                if alias.name.startswith(f"{PACKAGE}.")
            )
    return names


def test_every_folder_imports_only_what_lies_below_it() -> None:
    assert {p.name for p in FOLDER.iterdir() if (p / "__init__.py").exists()} == set(BELOW)
    upward = {
        f"{path.relative_to(FOLDER)} imports {name}"
        for folder, below in BELOW.items()
        for path in (FOLDER / folder).glob("*.py")
        for name in imported_folders(path) - below - {folder}
    }
    assert not upward


def test_the_emulator_runs_without_the_time_model_and_the_profile() -> None:
    for name in ("install.py", "sdk.py"):
        assert not imported_folders(FOLDER / name) & {"time_model", "profile", "report"}
