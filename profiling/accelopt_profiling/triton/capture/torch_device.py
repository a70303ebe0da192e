"""Run PyTorch code that names a GPU on a CPU-only build: ``device="cuda"`` is the CPU and reports itself as a GPU."""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from accelopt_profiling.comparison.memory import poison
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.capture.driver import capability
from accelopt_profiling.triton.capture.hollow_tensors import hollow, too_large

_ABSENT = object()

_CPU = torch.device("cpu")

_UNINITIALISED = {
    torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}  # fmt: skip


def _names_gpu(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type in ("cuda", "hip")
    return isinstance(value, str) and value.split(":")[0] in ("cuda", "hip")


class GpuOnCpu(TorchFunctionMode):  # type: ignore[misc]
    """Maps GPU devices to the CPU in every torch call, and reports tensors as being on the GPU.

    ``hollow`` skips drawing random floats: zeros of the same shape and type, whose pages cost nothing until touched.
    ``poison`` fills uninitialised tensors: floats with NaN, integers with their largest value (the values of
    ``torch.utils.deterministic.fill_uninitialized_memory``, whose switch costs a second to import).
    ``raw_pointers`` holds the tensors whose address user code asked for. ``skipped`` is called where something large
    is not computed; None has everything computed.
    """

    def __init__(self, hollow: bool = False, poison: bool = False) -> None:
        super().__init__()
        self.hollow, self.poison = hollow, poison
        self.raw_pointers: dict[int, Any] = {}
        self.skipped: Callable[[], None] | None = None
        self.device = torch.device("cuda", 0)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "__get__":
            if func == torch.Tensor.device.__get__:
                return self.device
            if func == torch.Tensor.is_cuda.__get__:
                return True
            return func(*args, **kwargs)
        if name in ("cuda", "hip") and args and isinstance(args[0], torch.Tensor):
            return args[0]
        if name == "pin_memory":
            return args[0]
        if name == "get_device":
            return 0
        if name == "data_ptr" and isinstance(args[0], torch.Tensor):
            self.raw_pointers.setdefault(args[0].untyped_storage().data_ptr(), args[0])
        kwargs.pop("pin_memory", None)
        if name == "to" and len(args) > 1 and isinstance(args[1], int) and not isinstance(args[1], bool):
            args = (args[0], _CPU, *args[2:])
        if "device" in kwargs and (_names_gpu(kwargs["device"]) or type(kwargs["device"]) is int):
            kwargs["device"] = _CPU
        if name != "device" and any(_names_gpu(a) for a in args):
            args = tuple(_CPU if _names_gpu(a) else a for a in args)
        if self.hollow:
            return hollow(func, args, kwargs)
        if self.skipped is not None and (zeros := too_large(func, args, kwargs)) is not None:
            self.skipped()
            return zeros
        result = func(*args, **kwargs)
        if self.poison and func in _UNINITIALISED:
            poison(result)
        return result


class CublasOnCpu:
    """Stands in for Triton's binding of cuBLAS, which files use as a baseline: the products are torch's."""

    def __init__(self, workspace: Any = None) -> None: ...
    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """Write ``a @ b.T`` to ``c``."""
        c.copy_((a.float() @ b.float().T).to(c.dtype))

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """Write ``alpha * a @ b.T + beta * c`` to ``d``."""
        d.copy_((alpha * (a.float() @ b.float().T) + beta * c.float()).to(d.dtype))


class _NoTime(float):
    """NaN, also in what is computed from it.

    A count made of it is 0, so that code that times itself comes to an end: ``max(1, int(budget / time))`` runs.
    """

    def __new__(cls) -> _NoTime:
        return super().__new__(cls, "nan")

    def _computed(self, _: Any) -> _NoTime:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _computed

    def __int__(self) -> int:
        return 0

    __trunc__ = __ceil__ = __floor__ = __int__


class _Event:
    """A device event whose times are NaN."""

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def record(self, *_: Any) -> None: ...
    def wait(self, *_: Any) -> None: ...
    def synchronize(self) -> None: ...
    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return _NoTime()


class _Stream:
    cuda_stream = stream_id = device_index = priority = 0
    device_type = 1
    device = torch.device("cuda", 0)

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None: ...
    def synchronize(self) -> None: ...
    def wait_stream(self, *_: Any) -> None: ...
    def wait_event(self, *_: Any) -> None: ...
    def record_event(self, event: Any = None) -> Any:
        return event or _Event()

    def query(self) -> bool:
        return True


class _Generator:
    """A device's random generator: its state is a seed and an offset, 8 bytes each."""

    def __init__(self) -> None:
        self._state = torch.zeros(2, dtype=torch.int64).view(torch.uint8)

    def get_state(self) -> torch.Tensor:
        return self._state.clone()

    def set_state(self, state: torch.Tensor) -> None:
        self._state = state.clone()

    def initial_seed(self) -> int:
        return int(self._state.view(torch.int64)[0])

    def manual_seed(self, seed: int) -> _Generator:
        self._state.view(torch.int64)[:] = torch.tensor([seed, 0])
        return self


_TorchGenerator = torch.Generator


class _AnyGenerator(type(torch.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _TorchGenerator)


class _HostGenerator(torch.Generator, metaclass=_AnyGenerator):  # type: ignore[misc]
    """``torch.Generator`` that makes a CPU's generator for a GPU too: draws for "cuda" happen in this memory."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls, device="cpu" if _names_gpu(device) else device)


class _Device(contextlib.nullcontext[None]):
    """``torch.cuda.device``: there is one, whichever is asked for."""

    idx = prev_idx = 0

    def __init__(self, *_: Any) -> None:
        super().__init__()


class _CudaDeviceProperties(SimpleNamespace):
    """Named as in torch."""


_UUID = 0x6F1C_93E2_7B5A_41D8_A2C4_0E97_D3B8_5F00


def device_properties(target: GpuTarget) -> Any:
    """Return what ``torch.cuda.get_device_properties`` returns on the target."""
    facts = target.device_properties()
    major, minor = capability(target)
    return _CudaDeviceProperties(
        name=target.title,
        major=major,
        minor=minor,
        multi_processor_count=facts["multiprocessor_count"],
        total_memory=int(target.get("dram_bytes", 80e9)),
        warp_size=target.warp_size,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=facts["max_shared_mem"],
        regs_per_multiprocessor=facts["max_num_regs"],
        max_threads_per_multi_processor=int(target.get("threads_per_multiprocessor", 2048)),
        L2_cache_size=int(target.get("l2_bytes", 50e6)),
        gcnArchName=str(target.arch),
        is_integrated=0,
        is_multi_gpu_board=0,
        uuid=uuid.UUID(int=_UUID + sum(target.name.encode())),
        pci_bus_id=26,
        pci_device_id=0,
        pci_domain_id=0,
        clock_rate=int(float(target.get("clock_hz", 1.7e9)) / 1e3),
        memory_clock_rate=facts.get("mem_clock_rate", 2619000),
        memory_bus_width=facts.get("mem_bus_width", 5120),
    )


def _nothing() -> Callable[..., None]:
    """Return a new function every time: torch's compiler refuses two names for one function."""
    return lambda *_, **__: None


def _stubs(target: GpuTarget) -> dict[str, Any]:
    properties = device_properties(target)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": _nothing(),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _nothing(),
        "synchronize": _nothing(),
        "empty_cache": _nothing(),
        "reset_peak_memory_stats": _nothing(),
        "manual_seed": lambda seed: torch.default_generator.manual_seed(seed),
        "manual_seed_all": lambda seed: torch.default_generator.manual_seed(seed),
        "get_device_name": lambda *a: properties.name,
        "get_device_capability": lambda *a: (properties.major, properties.minor),
        "get_device_properties": lambda *a: properties,
        "is_bf16_supported": lambda *a, **k: True,
        "memory_allocated": lambda *a: 0,
        "max_memory_allocated": lambda *a: 0,
        "mem_get_info": lambda *a: (properties.total_memory, properties.total_memory),
        "current_stream": lambda *a: _Stream(),
        "default_stream": lambda *a: _Stream(),
        "stream": lambda s=None: s if isinstance(s, _Stream) else _Stream(),
        "set_stream": _nothing(),
        "is_current_stream_capturing": lambda: False,
        "memory_reserved": lambda *a: 0,
        "max_memory_reserved": lambda *a: 0,
        "reset_max_memory_allocated": _nothing(),
        "memory_stats": lambda *a: {},
        "ipc_collect": _nothing(),
        "get_arch_list": lambda: [f"sm_{properties.major}{properties.minor}"],
        "Stream": _Stream,
        "Event": _Event,
        "device": _Device,
        "device_of": _Device,
        "_DeviceGuard": _Device,
        "default_generators": (_Generator(),),
    }


_module_of_device = torch.get_device_module


def _device_module(device: Any = None) -> Any:
    """Return what ``torch.get_device_module`` returns where the GPU is the device that counts."""
    return torch.cuda if device is None or _names_gpu(device) else _module_of_device(device)


#: ``torch.accelerator``, PyTorch's name for whichever device there is.
_ACCELERATOR: dict[str, Any] = {
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_accelerator": lambda *_, **__: torch.device("cuda"),
    "current_device_index": lambda: 0,
    "current_device_idx": lambda: 0,
    "set_device_index": _nothing(),
    "set_device_idx": _nothing(),
    "synchronize": _nothing(),
    "current_stream": lambda *_: _Stream(),
    "set_stream": _nothing(),
}

#: The internals of torch that code generated by its compiler uses.
_COMPILED: tuple[tuple[Any, dict[str, Any]], ...] = (
    (torch._C, {"_cuda_getCurrentRawStream": lambda device: 0}),
    (
        torch._C._dynamo.guards,
        {"_empty_strided_cuda": lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype)},
    ),
)


def _compilers_view(stubs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the class through which torch's compiler sees a GPU, and the ``stubs`` for it: it took the functions of
    ``torch.cuda`` when it was imported, which may be before this redirect."""
    module = sys.modules.get("torch._dynamo.device_interface")
    view = getattr(module, "CudaInterface", None)
    of_view = {n: v for n, v in stubs.items() if view is not None and n in vars(view)}
    return view, {n: v if isinstance(v, type) else staticmethod(v) for n, v in of_view.items()}


@contextlib.contextmanager
def gpu_on_cpu(target: GpuTarget, *, hollow: bool = False, poison: bool = True) -> Iterator[GpuOnCpu]:
    """Install the redirect for ``target``; on leaving, everything is as before.

    ``poison`` fills what ``torch.empty`` and its kin return.
    """
    saved: list[tuple[Any, str, Any]] = []
    versions = {"cuda": None, "hip": "6.4"} if target.backend == "hip" else {"cuda": "12.8", "hip": None}
    mode = GpuOnCpu(hollow, poison)
    try:
        stubs = _stubs(target)
        stubbed = (
            (torch.cuda, stubs), _compilers_view(stubs), (torch.version, versions), (torch.accelerator, _ACCELERATOR),
            (torch, {"Generator": _HostGenerator, "get_device_module": _device_module}), *_COMPILED,
        )  # fmt: skip
        for owner, values in stubbed:
            for name, value in values.items():
                before = vars(owner)[name] if isinstance(owner, type) else getattr(owner, name, _ABSENT)
                saved.append((owner, name, before))
                setattr(owner, name, value)
        with mode:
            yield mode
    finally:
        for owner, name, value in reversed(saved):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
