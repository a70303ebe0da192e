"""Triton's compiler: targets, sources, the stages between them, and the assembler that it calls."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import triton
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from accelopt_profiling.triton_adapter.runtime import VERSION

__all__ = ["ASTSource", "GPUTarget"]

Stage = Callable[[Any, Any], Any]


@contextmanager
def after_own_passes(wrap: Callable[[Stage, Any], Stage]) -> Iterator[None]:
    """Let ``wrap(stage, options)`` replace the stage after Triton's own passes until the block ends."""
    classes = [backend.compiler for backend in backends.values()]
    before = [kind.add_stages for kind in classes]

    def replacement(add_stages: Callable[..., None]) -> Callable[..., None]:
        def add(self: Any, stages: dict[str, Stage], options: Any, *language: Any) -> None:
            add_stages(self, stages, options, *language)  # a language is given since 3.4
            if "llir" in stages:
                stages["llir"] = wrap(stages["llir"], options)

        return add

    for kind, add_stages in zip(classes, before, strict=True):
        kind.add_stages = replacement(add_stages)
    try:
        yield
    finally:
        for kind, add_stages in zip(classes, before, strict=True):
            kind.add_stages = add_stages


#: The modules of which one makes the key of Triton's cache: up to 3.4, and since 3.5.
_KEY_MAKERS = ("triton.compiler.compiler", "triton.runtime.cache")


@contextmanager
def quick_key() -> Iterator[None]:
    """Let Triton's cache go by when its files were installed, until the block ends: to hash them takes 0.3 s."""
    modules: list[Any] = [importlib.import_module(name) for name in _KEY_MAKERS]
    owners = [module for module in modules if hasattr(module, "triton_key")]
    before = [module.triton_key for module in owners]
    for module in owners:
        module.triton_key = _installation
    try:
        yield
    finally:
        for module, key in zip(owners, before, strict=True):
            module.triton_key = key


@cache
def _installation() -> str:
    """Return what tells this installation of Triton from others: version, and its files' sizes and times."""
    folder = Path(triton.__file__).parent
    parts = ("compiler/*.py", "language/*.py", "backends/**/*.py", "_C/libtriton*")
    states = [file.stat() for part in parts for file in sorted(folder.glob(part))]
    return f"{triton.__version__} {folder} {[(state.st_size, state.st_mtime_ns) for state in states]}"


def ptxas(arch: int) -> tuple[str, str]:
    """Return path and version of the ptxas that Triton calls for the compute capability ``arch`` (90)."""
    from triton.backends.nvidia.compiler import get_ptxas

    if VERSION < (3, 4):
        path, version = get_ptxas(arch)
        return str(path), str(version)
    tool = get_ptxas() if VERSION < (3, 6) else get_ptxas(arch)  # 3.4 and 3.5 have one for all
    return str(tool.path), str(tool.version)


def missing_linker(backend: str) -> str:
    """Return what AMD's code cannot be linked without.

    3.3 and 3.4 leave the linker to ROCm, later ones bring it.
    """
    if backend != "hip" or VERSION >= (3, 5):
        return ""
    try:
        backends["amd"].compiler.path_to_rocm_lld()
    except Exception as error:  # Triton raises no class of its own
        return str(error)
    return ""


_LOCATION = re.compile(
    r"^!(\d+) = !DILocation\(line: (\d+), column: (\d+), scope: !(\d+)(?:, inlinedAt: !(\d+))?\)", re.M
)
_SCOPE = re.compile(r"^!(\d+) = distinct !DI(?:LexicalBlockFile|Subprogram)\(.*?file: !(\d+)", re.M)
_FILE = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]+)"', re.M)
_COMMENT = re.compile(r"(?<=// )(\S+:\d+:\d+)$", re.M)


def located_ptx(asm: Mapping[str, str]) -> str:
    """Return a kernel's PTX whose positions say from where they were inlined.

    3.3 has that in its LLVM IR alone.
    """
    if VERSION >= (3, 4):
        return asm["ptx"]
    files, scopes = dict(_FILE.findall(asm["llir"])), dict(_SCOPE.findall(asm["llir"]))
    locations = {number: rest for number, *rest in _LOCATION.findall(asm["llir"])}
    callers: dict[str, set[str]] = {}

    def place(line: str, column: str, scope: str, _: str) -> str:
        return f"{files.get(scopes.get(scope, ''), '')}:{line}:{column}"

    for location in locations.values():
        user = location
        while user[3]:
            user = locations[user[3]]
        if user is not location:
            callers.setdefault(place(*location), set()).add(place(*user))

    def with_caller(position: re.Match[str]) -> str:
        places = callers.get(position[0], set())
        return f"{position[0]} @[ {next(iter(places))} ]" if len(places) == 1 else position[0]

    return _COMMENT.sub(with_caller, asm["ptx"])
