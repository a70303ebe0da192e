"""Compile a captured launch for a target with Triton's own compiler, and collect the facts about the result.

No GPU, driver or CUDA toolkit is needed: Triton's wheel holds ptxas, cuobjdump, nvdisasm and AMD's code generator.
First the facts that cost milliseconds (registers, shared memory, PTX); ``compile_with_machine_code`` adds those of
nvdisasm.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.assembly import parse_amdgcn, parse_ptx
from accelopt_profiling.triton.compilation.compiled import (
    CompiledFacts,
    CompileProblem,
    amdgcn_resources,
    cubin_resources,
    cuda_tool,
    occupancy,
)
from accelopt_profiling.triton.compilation.instructions import Listing
from accelopt_profiling.triton.compilation.integers import amdgcn_cost, integer_instructions, ptx_cost
from accelopt_profiling.triton.compilation.machine_code import machine_code
from accelopt_profiling.triton.compilation.ttgir import parse_ttgir
from accelopt_profiling.triton.launch import CapturedLaunch

#: The options that a user chooses; all others in a JIT's options depend on the target.
CHOSEN_OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "launch_pdl",
    "extern_libs", "sanitize_overflow", "debug", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint",
    "allow_flush_denorm", "enable_reflect_ftz", "ptx_options",
)  # fmt: skip
_THREADS = re.compile(r"\.reqntid\s+(\d+)")
_BLOCK = re.compile(r"tensor<((?:\d+x)+)")
#: A block of more elements a thread is not compiled: the code is as long, and the compiler takes time by its square
#: (1.0 s for 256, 7.9 s for 1024, 34 s for 2048 of a sum on one core of a busy machine).
_MOST_PER_THREAD = 1024


class BlockTooWideError(Exception):
    """A block has more elements for each thread than are compiled here."""


class MissingToolError(Exception):
    """Triton calls a program that is not installed."""


def compile_launch(launch: CapturedLaunch, target: GpuTarget, cache: Path | None = None) -> CompiledFacts:
    """Compile ``launch`` for ``target``.

    Errors are facts too (``CompiledFacts.problem``): nothing is raised for them.

    ``cache`` is the folder below which compiled kernels are kept (default: Triton's). Cold 50 to 700 ms, from the
    cache about 15 ms.
    """
    facts, _ = _compile(launch, target, cache)
    return facts


def compile_with_machine_code(
    launch: CapturedLaunch, target: GpuTarget, cache: Path | None = None
) -> CompiledFacts:
    """Compile as ``compile_launch`` does, then read the instructions of the machine code instead of the PTX.

    That takes 0.3 to 0.6 s more; for AMD nothing, as its assembly is the machine code.

    Raises:
        DisassemblyError: nvdisasm could not read the binary.
    """
    facts, kernel = _compile(launch, target, cache)
    if kernel is None or target.backend != "cuda":
        return replace(facts, detail="machine code") if kernel is not None else facts
    ptx = parse_ptx(_located_ptx(kernel), launch.file)
    listing = machine_code(kernel.asm["cubin"], cuda_tool("nvdisasm"), launch.file, ptx)
    return replace(facts, detail="machine code", **_from_listing(listing))


def _compile(launch: CapturedLaunch, target: GpuTarget, cache: Path | None) -> tuple[CompiledFacts, Any]:
    started = time.perf_counter()
    options = {name: launch.options[name] for name in CHOSEN_OPTIONS if launch.options.get(name) is not None}
    if target.backend == "hip":
        options.pop("extern_libs", None)  # NVIDIA's libdevice; AMD's libraries are Triton's default
    nothing = CompiledFacts(
        target.name,
        target.architecture,
        warps=int(options.get("num_warps", 4)),
        stages=int(options.get("num_stages", 0)),
        toolchain=versions(target),
    )
    if (problem := launch_problem(launch, target)) is not None:  # ptxas says less clearly what is wrong
        return replace(nothing, problem=problem), None
    try:
        kernel, hit = _triton_compile(launch, target, options, cache)
    except Exception as error:  # Triton raises whatever its passes raise, and the kernel is the user's
        problem = _problem(error, launch)
        return replace(nothing, problem=problem, seconds=time.perf_counter() - started), None
    facts = _facts(nothing, kernel, launch, target)
    return replace(facts, seconds=time.perf_counter() - started, cache_hit=hit), kernel


def _triton_compile(
    launch: CapturedLaunch, target: GpuTarget, options: Mapping[str, Any], cache: Path | None
) -> tuple[Any, bool]:
    import triton

    from accelopt_profiling.triton_adapter.compiler import (
        ASTSource,
        after_own_passes,
        missing_linker,
        quick_key,
    )

    if reason := missing_linker(target.backend):
        raise MissingToolError(reason)

    source = launch.source
    if source is None:
        constants = {(launch.fn.arg_names.index(name),): value for name, value in launch.constants.items()}
        source = ASTSource(launch.fn, dict(launch.signature), constants, dict(launch.attrs))
    modules: list[Any] = []

    def checked(stage: Callable[[Any, Any], Any], options: Any) -> Callable[[Any, Any], Any]:
        def run(module: Any, metadata: Any) -> Any:
            modules.append(module)
            _check_width(str(module), options)
            return stage(module, metadata)

        return run

    # ptxas errors are printed with the whole PTX before they are raised: keep that from the worker's output.
    with (
        own_cache(launch.file, cache),
        quick_key(),
        after_own_passes(checked),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        kernel = triton.compile(source, target=target.triton_target(), options=dict(options))
    return kernel, not modules


def _check_width(module: str, options: Any) -> None:
    """Raise BlockTooWideError for blocks that are too wide to be compiled."""
    shapes = {tuple(map(int, m[1].rstrip("x").split("x"))) for m in _BLOCK.finditer(module)}
    widest = max(map(math.prod, shapes), default=0)
    threads = options.num_warps * getattr(options, "warp_size", 32) * options.num_ctas
    if widest > _MOST_PER_THREAD * threads:
        raise BlockTooWideError(
            f"A block of {widest:,} elements for {threads:,} threads is {widest // threads:,} a thread: it was "
            "not compiled, which takes minutes, and registers cannot hold it. Use smaller blocks in a loop."
        )


def _facts(facts: CompiledFacts, kernel: Any, launch: CapturedLaunch, target: GpuTarget) -> CompiledFacts:
    metadata, asm = kernel.metadata, kernel.asm
    if target.backend == "cuda":
        resources = cubin_resources(asm["cubin"], asm["ptx"], cuda_tool("cuobjdump"))
        listing = parse_ptx(_located_ptx(kernel), launch.file)
        threads = _THREADS.search(asm["ptx"])
        warps = int(threads[1]) // target.warp_size if threads else metadata.num_warps
    else:
        resources = amdgcn_resources(asm["amdgcn"])
        listing = parse_amdgcn(asm["amdgcn"], launch.file)
        warps = metadata.num_warps
    ir = parse_ttgir(asm["ttgir"], launch.file)
    columns = int(getattr(metadata, "tmem_size", None) or 0)
    fits = occupancy(
        target,
        warps=warps,
        registers=resources.registers,
        shared_bytes=metadata.shared,
        tensor_memory_columns=columns,
    )
    return replace(
        facts,
        warps=warps,
        stages=metadata.num_stages,
        programs_per_cluster=metadata.num_ctas,
        registers=resources.registers,
        stack_bytes=resources.stack_bytes,
        spill_bytes=resources.spill_bytes,
        shared_bytes=metadata.shared,
        tensor_memory_columns=columns,
        occupancy=fits,
        matrix_unit=ir.matrix_unit,
        pipeline_depth=ir.pipeline_depth,
        accesses=list(ir.accesses),
        convert_layouts=ir.convert_layouts,
        integers=integer_instructions(listing, ptx_cost if target.backend == "cuda" else amdgcn_cost),
        problem=_does_not_fit(
            target,
            warps,
            shared=metadata.shared,
            columns=columns,
            programs=fits.programs,
            cluster=metadata.num_ctas,
        ),
        **_from_listing(listing),
    )


def _located_ptx(kernel: Any) -> str:
    from accelopt_profiling.triton_adapter.compiler import located_ptx

    return located_ptx(kernel.asm)


def _from_listing(listing: Listing) -> dict[str, Any]:
    return {
        "instructions": listing.counts(),
        "lines": listing.by_line(),
        "loops": listing.loops(),
        "access_bytes": listing.access_bytes(),
    }


def launch_problem(launch: CapturedLaunch, target: GpuTarget) -> CompileProblem | None:
    """Return why ``target`` takes no such launch, by its grid and warps alone; None where nothing speaks against it."""
    for axis, programs in enumerate(launch.grid):
        most = target.get("max_programs_on_other_axes" if axis else "max_programs_on_axis_0", math.inf)
        if programs > most:
            return CompileProblem(
                "out-of-resources",
                f"is launched with {programs:,} programs on axis {axis} of its grid; {target.title} allows "
                f"{int(most):,} there",
            )
    return _too_many_threads(target, int(launch.options.get("num_warps") or 4))


def _too_many_threads(target: GpuTarget, warps: int) -> CompileProblem | None:
    threads = int(target["max_threads_per_program"])
    if warps * target.warp_size <= threads:
        return None
    return CompileProblem(
        "out-of-resources",
        f"has {warps} warps, which are {warps * target.warp_size} threads; {target.title} allows {threads} per "
        "program; use fewer warps",
    )


def _does_not_fit(
    target: GpuTarget, warps: int, shared: int, columns: int, programs: int, cluster: int
) -> CompileProblem | None:
    if (problem := _too_many_threads(target, warps)) is not None:
        return problem
    most = int(target.get("max_programs_per_cluster", 1))
    if cluster > most:
        allowed_clusters = f"allows {most} in one" if most > 1 else "has no clusters"
        return CompileProblem(
            "out-of-resources",
            f"runs clusters of {cluster} programs (num_ctas); {target.title} {allowed_clusters}",
        )
    allowed = int(target["shared_memory_per_program"])
    if shared > allowed:
        return CompileProblem(
            "out-of-resources",
            f"needs {shared} bytes of shared memory, {target.title} allows {allowed} per program; "
            "use smaller blocks or fewer stages",
        )
    available = int(target.get("tensor_memory_columns", 0))
    if columns > available:
        return CompileProblem(
            "out-of-resources",
            f"needs {columns} columns of tensor memory, {target.title} has {available}; use smaller blocks",
        )
    if programs == 0:
        return CompileProblem(
            "out-of-resources", f"one program does not fit on {target.title}; use fewer warps"
        )
    return None


def _problem(error: Exception, launch: CapturedLaunch) -> CompileProblem:
    name = type(error).__name__
    text = str(error).strip() or name
    if isinstance(error, BlockTooWideError):
        return CompileProblem("too-wide", text)
    if name == "OutOfResources":
        return CompileProblem("out-of-resources", text)
    if (
        name in ("ResourcesUnknownError", "FileNotFoundError", "MissingToolError")
        or "for option 'gpu-name'" in text
    ):
        return CompileProblem("toolchain", text[:2000])  # no assembler, or one that does not know the target
    if name == "PTXASError":  # the rest is the whole PTX
        text = (
            "; ".join(line.strip() for line in text.splitlines() if " error " in line or "fatal" in line)
            or text
        )
    line = None
    node = getattr(error, "node", None)
    if node is not None and hasattr(node, "lineno"):
        line = launch.line + node.lineno - 1  # Triton parses a kernel's source from its def on
    last = text.splitlines()[-1].strip()
    if not last.strip("^ "):  # the line alone: what happened there is the error's cause
        cause: BaseException | None = error
        while cause is not None and (cause.__cause__ or cause.__context__):
            cause = cause.__cause__ or cause.__context__
        explanation = str(getattr(cause, "error_message", None) or cause)  # without the source in front of it
        last = (
            f"{type(cause).__name__}: {' '.join(explanation.split())[:200]}" if cause is not error else name
        )
    return CompileProblem("compile-error", last if line else text[:2000], line)


def versions(target: GpuTarget) -> dict[str, str]:
    """Return Triton's version and, for NVIDIA, that of the ptxas it uses for the architecture.

    Triton takes ``ptxas-blackwell`` from compute capability 10.0 on (3.9: from 9.0 on) and ``ptxas`` below; which
    one counts is asked from Triton itself.
    """
    import triton

    numbers = {"triton": triton.__version__}
    if target.backend == "cuda":
        from accelopt_profiling.triton_adapter.compiler import ptxas

        numbers["ptxas"] = ptxas(int(target.arch))[1]
    return numbers


_MARK = "accelopt-"


def cache_folder(file: str, root: Path) -> Path:
    """Return the cache folder for kernels of ``file`` below ``root``."""
    name = PurePath(file).name
    return root / f"{_MARK}{hashlib.sha256(name.encode()).hexdigest()[:16]}"


@contextmanager
def own_cache(file: str, root: Path | None = None) -> Iterator[Path]:
    """Let Triton use the cache for ``file`` inside the ``with`` block, and yield its folder.

    ``root`` is Triton's own cache folder (``TRITON_CACHE_DIR``) unless given. Blocks may be nested.
    """
    variable = "TRITON_CACHE_DIR"
    before = os.environ.get(variable)
    if root is None:
        outer = Path(before or Path(os.environ.get("TRITON_HOME") or Path.home()) / ".triton" / "cache")
        root = outer.parent if outer.name.startswith(_MARK) else outer
    folder = cache_folder(file, root)
    os.environ[variable] = str(folder)
    try:
        yield folder
    finally:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before
