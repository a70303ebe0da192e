"""The files of a project that a job elsewhere needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_profiling.problems.discovery.imports import project_imports


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package ``lib`` with two sub-packages of one module and a problem beside it."""
    for folder in ("", "ops", "ops/a", "ops/b"):
        (tmp_path / "lib" / folder).mkdir()
        (tmp_path / "lib" / folder / "__init__.py").write_text("")
    for name in ("ops/a/kernels.py", "ops/a/kernels_problem.py", "ops/b/kernels.py", "registry.py"):
        (tmp_path / "lib" / name).write_text("VALUE = 1\n")
    return tmp_path


def shipped(root: Path, text: str) -> set[str]:
    kernel = root / "lib" / "ops" / "mine.py"
    files = project_imports({kernel: text}, [root], root)
    return {p.relative_to(root / "lib").as_posix() for p in files if p.name != "__init__.py"}


@pytest.mark.parametrize(("text", "expected"), [
    ("import lib.registry", {"registry.py"}),
    ("from importlib import import_module\nimport_module('lib.ops.b.kernels')", {"ops/b/kernels.py"}),
    ("import importlib\nimportlib.import_module('.b.kernels', __package__)", {"ops/b/kernels.py"}),
    ("import importlib\nimportlib.import_module(f'lib.ops.{x}.kernels')",
     {"registry.py", "ops/a/kernels.py", "ops/b/kernels.py"}),
])  # fmt: skip
def test_modules_imported_by_name_travel(package: Path, text: str, expected: set[str]) -> None:
    assert shipped(package, text) == expected


def test_a_module_that_computes_names_further_on_brings_its_package(package: Path) -> None:
    (package / "lib" / "registry.py").write_text("def load(name):\n    return __import__(name)\n")
    assert shipped(package, "import lib.registry") == {"registry.py", "ops/a/kernels.py", "ops/b/kernels.py"}
