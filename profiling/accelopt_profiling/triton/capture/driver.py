"""A driver for a GPU that is not there: Triton compiles for it, and launches are recorded instead of run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.compiled import cubin_resources, cuda_tool
from accelopt_profiling.triton.launch import with_constants
from accelopt_profiling.triton_adapter.runtime import current_driver, loaded_kernel

Record = Callable[[Any, Any, Any, tuple[int, int, int], tuple[Any, ...]], None]

#: Each target gets its own device index: the JIT keys its caches by it.
_INDICES: dict[str, int] = {}


class StandInUtils:
    """The functions of a loaded driver that Triton calls: device properties, and the resources of a binary."""

    def __init__(self, target: GpuTarget) -> None:
        self._target = target

    def get_device_properties(self, device: int) -> dict[str, int]:
        return self._target.device_properties()

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Return module, function, registers and spilled 4-byte words per thread, and the most threads per program."""
        registers, stack = _resources(binary, self._target.backend)
        return loaded_kernel(name, name, registers=registers, spills=stack // 4, threads=1024)

    def unload_module(self, module: Any) -> None:
        """Nothing was loaded."""

    def set_printf_fifo_size(self, size: int) -> None:
        """There is no device whose queue could be sized."""


def _resources(binary: bytes, backend: str) -> tuple[int, int]:
    """Return registers and bytes of stack per thread of a compiled kernel, from the tools in Triton's wheel."""
    if backend == "hip":
        text = re.sub(rb"[^\x20-\x7e]", b" ", binary)
        match = re.search(rb"\.vgpr_count\W+(\d+)", text)
        return (int(match.group(1)) if match else 0), 0
    resources = cubin_resources(binary, "", cuda_tool("cuobjdump"))
    return resources.registers, resources.stack_bytes


class StandInDriver:
    """The active driver while a target is emulated.

    ``record(fn, source, metadata, grid, args)`` receives each launch. ``tuning`` is above 0 while an autotuner
    tries configurations; nothing is timed, so the configuration that wins is the one that ``prefers(tuner,
    configuration)`` says, or the first that is tried. With ``runs_tries`` that one runs while it is tried, as it would
    on a device; ``running_try`` tells when.
    """

    def __init__(self, target: GpuTarget, record: Record) -> None:
        self.target = target
        self.utils = StandInUtils(target)
        self.tuning = 0
        self.runs_tries = self.running_try = False
        self.prefers: Callable[[Any, Any], bool | None] = lambda tuner, configuration: False
        self.record = record
        self._index = _INDICES.setdefault(target.name, len(_INDICES))

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        def launch(x: int, y: int, z: int, *rest: Any) -> None:
            arguments = rest[6:]  # after stream, function, packed metadata, launch metadata and two hooks
            self.record(source.fn, source, metadata, (x, y, z), arguments)

        return launch

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> Any:
        return self.target.triton_target()

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_current_device(self) -> int:
        return self._index

    def set_current_device(self, device: int) -> None:
        """There is one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return capability(self.target)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(16, dtype=torch.int32)

    def clear_cache(self, cache: Any) -> None:
        """There is no cache."""

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return self.benchmark

    def benchmark(
        self, kernel_call: Callable[[], Any], *, quantiles: Sequence[float] = (), **_: Any
    ) -> list[float]:
        """Record one configuration of an autotuner. The time is a constant, nothing is run or timed."""
        self.tuning += 1
        try:
            kernel_call()
        finally:
            self.tuning -= 1
        return [1.0] * max(1, len(quantiles))

    def benchmark_of(self, tuner: Any, configuration: Any) -> Callable[..., list[float]]:
        """Return the substitute for timing one configuration of ``tuner``: fastest when it is preferred."""
        chosen = self.prefers(tuner, configuration)

        def benchmark(kernel_call: Callable[[], Any], **options: Any) -> list[float]:
            if chosen is None:  # as Triton's autotuner takes one that does not compile
                return [math.inf] * max(1, len(options.get("quantiles") or ()))
            self.running_try = chosen and self.runs_tries
            try:
                times = self.benchmark(kernel_call, **options)
            finally:
                self.running_try = False
            return [0.5 if chosen else time for time in times]

        return benchmark


def capability(target: GpuTarget) -> tuple[int, int]:
    """Return the CUDA compute capability.

    For AMD the generation, as torch reports it ("gfx942" is (9, 4)).
    """
    if isinstance(target.arch, int):
        return divmod(target.arch, 10)
    digits = target.arch.removeprefix("gfx")
    return int(digits[:-2]), int(digits[-2], 16)


class DeferredKernel:
    """Stands in for Triton's ``CompiledKernel``.

    Reading ``n_regs``, ``asm`` and so on compiles it.

    A launch goes to the driver that is active then: the JIT keeps this object longer than an emulation lasts.
    """

    def __init__(self, source: Any, options: dict[str, Any], compile_now: Callable[[], Any]) -> None:
        self.src = source
        #: What a device's driver would hand out: an address, and what a launch is told.
        self.module = self.function = 0x5500_0000_0000 | (id(self) & 0xFFFF_FFF0)
        self.packed_metadata = (options.get("num_warps", 4), options.get("num_ctas", 1), 0, 1, 1, 1)
        self.options = options
        self._compile_now = compile_now
        self._compiled: Any = None

    def _kernel(self) -> Any:
        if self._compiled is None:
            self._compiled = self._compile_now()
            self._compiled._init_handles()
        return self._compiled

    def _init_handles(self) -> None:
        self._kernel()

    def result(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._kernel(), name)

    def launch_metadata(self, grid: Any, stream: Any, *arguments: Any) -> None:
        """Launch hooks belong to profilers of real devices; they see nothing here."""

    def run(
        self, x: int, y: int, z: int, stream: Any, function: Any, packed: Any, data: Any, enter: Any, leave: Any,
        *arguments: Any,
    ) -> None:  # fmt: skip
        metadata = SimpleNamespace(**self.options)
        current_driver().record(self.src.fn, self.src, metadata, (x, y, z), arguments)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        x, y, z = (*grid, 1, 1, 1)[:3]

        def launch(*arguments: Any, stream: Any = None) -> None:
            complete = with_constants(self.src.fn, self.src, arguments)
            self.run(x, y, z, stream, None, None, None, None, None, *complete)

        return launch
