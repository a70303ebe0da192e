"""Type stubs of NKI: every name that the emulator has, and kernels without false errors."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Command

from accelopt_lsp.language.nki_stubs import MARK, stubs
from accelopt_profiling.nki.beta1.modules import modules as beta1_modules
from accelopt_profiling.nki.current.modules import modules as current_modules
from accelopt_profiling.nki.data.dtypes import NAMES
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.frontend.language import TileSize
from accelopt_profiling.nki.instructions.enums import CHOICES
from accelopt_profiling.nki.operations.table import table

VERSIONS = tuple(table()["versions"])
ROOT = Path(__file__).parents[2]


def defined(text: str) -> set[str]:
    """The names that a stub defines or hands on."""
    names: set[str] = set()
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
            case ast.ImportFrom(names=aliases):
                names |= {a.asname or a.name for a in aliases}
    return names


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stub_has_every_name_of_the_emulated_module(version: str) -> None:
    texts = stubs(version)
    modules = {**beta1_modules(lambda _: Machine()), **current_modules(lambda _: Machine(), version)}
    for dotted, module in modules.items():
        path = dotted.replace(".", "/")
        text = texts.get(f"{path}.pyi") or texts[f"{path}/__init__.pyi"]
        names = {name for name in vars(module) if not name.startswith("_")}
        if "def __getattr__" not in text:
            assert names <= defined(text), dotted


def test_a_stub_has_what_its_version_has() -> None:
    old, new = stubs("0.3"), stubs("0.7")
    assert "def activate2(" not in old["nki/isa/__init__.pyi"]
    assert "def activate2(" in new["nki/isa/__init__.pyi"]
    assert "def permute(" not in old["nki/typing.pyi"]
    assert "def permute(" in new["nki/typing.pyi"]
    assert '@deprecated("since NKI 0.7; use range")\ndef affine_range' in new["nki/language.pyi"]
    assert "@deprecated" not in old["nki/language.pyi"]
    assert "def loop_reduce(" not in new["nki/language.pyi"]
    assert "def loop_reduce(" in new["neuronxcc/nki/language/__init__.pyi"]


def test_the_values_of_the_table_are_those_of_the_emulator() -> None:
    values = table()["values"]
    assert set(values["dtypes"].split()) == {*NAMES, "bool"}
    assert values["choices"] == {
        name: " ".join(member.name for member in kind) for name, kind in CHOICES.items()
    }
    assert set(values["tile_size"]["beta1"].split()) == {n for n in vars(TileSize) if not n.startswith("_")}


FAULTY = """\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def k(a):
    x = nl.load(a)
    nisa.activation(op=nl.exp, data=x)
    return nl.expp(x).permute((1, 0)).turn()
"""


def checked(folder: Path, *paths: Path) -> list[str]:
    """What mypy says of the bodies of ``paths`` with the stubs in ``folder``."""
    command = [sys.executable, "-m", "mypy", "--check-untyped-defs", "--no-incremental", "--config-file="]
    environment = {**os.environ, "MYPYPATH": str(folder)}
    run = subprocess.run(
        [*command, "--scripts-are-modules", "--ignore-missing-imports", *map(str, paths)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )
    assert run.returncode in (0, 1), run.stderr
    return [line for line in run.stdout.splitlines() if ": error: " in line]


@pytest.mark.slow
def test_mypy_finds_no_false_error_in_kernels_and_the_true_ones(accelopt: Command, home: Path) -> None:
    assert accelopt("stubs", "--write").code == 0
    folder = home / "typings"
    tasks = sorted((ROOT / "nkibench/nkibench/tasks").glob("*/*.py"))
    kernels = [path for path in tasks if "nki" in path.read_text()]
    assert len(kernels) >= 14
    for path in [*kernels, *sorted((ROOT / "examples").glob("nki_*.py"))]:
        copy = home / "kernels" / f"{path.parent.name.replace('-', '_')}_{path.name}"
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(path.read_text())
    assert checked(folder, *sorted((home / "kernels").glob("*.py"))) == []
    (home / "faulty.py").write_text(FAULTY)
    errors = checked(folder, home / "faulty.py")
    assert len(errors) == 2, errors
    assert "dst" in errors[0]
    assert "expp" in errors[1]


def test_stubs_are_written_over_their_like_alone(accelopt: Command, home: Path) -> None:
    listed = accelopt("stubs", "--json")
    assert listed.object["written"] is False
    assert not (home / "typings").exists()
    written = accelopt("stubs", "--write", "--nki", "0.5", "--json")
    assert written.object["written"] is True
    files = {path.relative_to(home / "typings").as_posix() for path in (home / "typings").rglob("*.pyi")}
    assert files == set(written.object["files"]) == set(listed.object["files"])
    assert accelopt("stubs", "--write", "mine").code == 0
    assert MARK in (home / "mine/nki/language.pyi").read_text()
    (home / "typings/nki/isa/constants.pyi").write_text("one = 1\n")
    again = accelopt("stubs", "--write")
    assert again.code == 2
    assert "constants.pyi" in again.err
    assert "NKI 0.5" in (home / "typings/nki/language.pyi").read_text()
    assert accelopt("stubs", "--nki", "9").code == 2
