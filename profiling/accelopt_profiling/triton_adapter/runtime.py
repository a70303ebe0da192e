"""Triton's launches: jitted functions, the autotuner, the driver, and hooks around launches."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import triton
import triton.compiler
import triton.testing
from triton.compiler import CompiledKernel
from triton.runtime import driver as _driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction, mangle_type

from accelopt_profiling.triton_adapter.versions import minor_version

__all__ = ["VERSION", "Autotuner", "CompiledKernel", "JITFunction", "mangle_type"]

VERSION = minor_version(triton.__version__)


def defined_at(fn: Any) -> tuple[str, int]:
    """Return the file of a jitted function and the line of its ``def``."""
    return fn.fn.__code__.co_filename, _definition_line(fn.fn)


@functools.cache
def _definition_line(function: Any) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next((n for n, line in enumerate(lines) if line.strip().startswith("def ")), 0)


def warm_up() -> None:
    """Import what Triton looks for when it first specialises an argument."""
    with suppress(ImportError):
        importlib.import_module("triton.experimental.gluon.nvidia.hopper")


def real_compiler() -> Callable[..., Any]:
    """Return the function that compiles a kernel's source."""
    compiler: Callable[..., Any] = triton.compiler.compile
    return compiler


def emulation_places(
    compiler: Callable[..., Any],
    bench: Callable[..., Any],
    run_once: Callable[..., Any],
    sizes: Any,
    cublas: Any,
) -> list[tuple[Any, str, Any]]:
    """Return what an emulation replaces in Triton, as owner, name and substitute.

    ``compiler`` compiles, ``bench`` times one configuration of an autotuner, ``run_once`` times a function, ``sizes``
    runs a benchmark's sizes, and ``cublas`` is cuBLAS's handle, where Triton has one.
    """
    places = [
        (triton.compiler, "compile", compiler),
        (Autotuner, "_bench", bench),
        (triton.testing, "do_bench", run_once),
        (triton.testing, "do_bench_cudagraph", run_once),
        (triton.testing.Mark, "run", sizes),
    ]
    if hasattr(Autotuner, "check_disk_cache"):  # since 3.4
        places.append((Autotuner, "check_disk_cache", _try_all))
    library = getattr(getattr(triton._C.libtriton, "nvidia", None), "cublas", None)
    return places if library is None else [*places, (library, "CublasLt", cublas)]


def _try_all(tuner: Any, key: Any, configs: Any, bench: Callable[[], None]) -> bool:
    """Stand in for ``Autotuner.check_disk_cache``: a choice kept on disk is of real times, and its key runs ptxas."""
    bench()
    return False


@contextmanager
def active_driver(driver: Any) -> Iterator[None]:
    """Let ``driver`` be Triton's active one until the block ends."""
    name = "_active" if VERSION >= (3, 5) else "active"  # a property since 3.5, which looks for a GPU
    before = vars(_driver)[name]
    _driver.set_active(driver)
    try:
        yield
    finally:
        _driver.set_active(before)


def current_driver() -> Any:
    """Return the driver that launches go to."""
    return _driver.active


def loaded_kernel(module: Any, function: Any, registers: int, spills: int, threads: int) -> tuple[Any, ...]:
    """Return what a driver tells of a kernel that it loaded. The most ``threads`` of a program since 3.4."""
    facts = (module, function, registers, spills, threads)
    return facts if VERSION >= (3, 4) else facts[:4]


@contextmanager
def launch_hooks(enter: Callable[[Any], None], leave: Callable[[Any], None]) -> Iterator[None]:
    """Have ``enter`` and ``leave`` called around each launch until the block ends."""
    if VERSION < (3, 5):  # one hook each: of the compiled kernel's class in 3.3, a knob in 3.4
        owner = CompiledKernel if VERSION < (3, 4) else triton.knobs.runtime
        before = owner.launch_enter_hook, owner.launch_exit_hook
        owner.launch_enter_hook, owner.launch_exit_hook = enter, leave
        try:
            yield
        finally:
            owner.launch_enter_hook, owner.launch_exit_hook = before
        return
    chains = (triton.knobs.runtime.launch_enter_hook, enter), (triton.knobs.runtime.launch_exit_hook, leave)
    for chain, hook in chains:
        chain.add(hook)
    try:
        yield
    finally:
        for chain, hook in chains:
            with suppress(ValueError):  # user code may have cleared the hooks
                chain.remove(hook)
