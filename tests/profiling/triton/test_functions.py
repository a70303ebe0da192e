"""The table of Triton's functions against the installed package, and what it says of versions."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import triton.language

from accelopt_profiling.triton.functions.table import Kind, functions, functions_of, missing
from accelopt_profiling.triton_adapter.runtime import VERSION
from accelopt_profiling.triton_adapter.versions import NEWEST, OLDEST


def script() -> ModuleType:
    path = Path(__file__).parents[3] / "scripts/triton_functions.py"
    spec = importlib.util.spec_from_file_location("triton_functions_script", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_are_the_functions_of_the_installed_package() -> None:
    modules = Path(triton.language.__file__).parent.glob("*.py")
    installed = script().functions_in({module.stem: module.read_text("utf-8") for module in modules})
    rows = {f.name: p for f in functions().values() if (p := f.parameters(VERSION)) is not None}
    assert rows == installed, "run scripts/triton_functions.py"


def test_each_row_has_a_kind_and_parameters_from_a_version_on() -> None:
    for function in functions().values():
        assert function.kind in get_args(Kind)
        versions = [version for version, _ in function.versions]
        assert versions == sorted(versions)
        assert OLDEST <= versions[0] <= versions[-1] <= NEWEST
        for _, parameters in function.versions:
            if parameters is not None:
                ast.parse(f"def function({parameters}): ...")
    assert all(functions_of(kind) for kind in get_args(Kind))


@pytest.mark.parametrize(
    ("name", "version", "why"),
    [
        ("load", (3, 3), ""),
        ("make_block_ptr", (3, 8), ""),
        ("make_block_ptr", (3, 9), "tl.make_block_ptr is gone since Triton 3.9; Triton 3.9 is installed"),
        ("atomic_load", (3, 7), "tl.atomic_load is there since Triton 3.9; Triton 3.7 is installed"),
        ("lod", (3, 7), "Triton has no tl.lod; it has tl.load"),
        ("quaternion", (3, 7), "Triton has no tl.quaternion"),
        ("quaternion", (9, 0), ""),
    ],
)
def test_a_function_that_a_version_lacks_is_told(name: str, version: tuple[int, int], why: str) -> None:
    assert missing(name, version) == why
