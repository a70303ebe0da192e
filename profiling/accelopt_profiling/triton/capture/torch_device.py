"""Run PyTorch code that names a GPU on a CPU-only build: ``device="cuda"`` is the CPU and reports itself as a GPU."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from accelopt_profiling.comparison.memory import poison
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.capture.driver import capability

_ABSENT = object()

#: Bytes that a device allocation's address is a multiple of (CUDA C++ Programming Guide, "Size and Alignment
#: Requirement": addresses returned by the allocation routines are aligned to at least 256 bytes).
_ALIGNMENT = 256

_CPU = torch.device("cpu")

#: A hollow run computes nothing on tensors of more bytes.
_LARGE = 64 << 20

#: Random draws that a hollow run replaces by zeros: only shapes and types matter then.
_DRAWS_LIKE = {torch.randn_like, torch.rand_like}
_DRAWS = {torch.randn, torch.rand, torch.normal}
_UNINITIALISED = {
    torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}  # fmt: skip


#: Change what is known of a tensor, and none of its elements: a hollow run makes them, whatever the size.
_OF_THE_TENSOR = {
    "as_strided_", "detach_", "requires_grad_", "resize_", "resize_as_", "set_", "share_memory_", "squeeze_",
    "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
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
    ``raw_pointers`` holds the tensors whose address user code asked for.
    """

    def __init__(self, hollow: bool = False, poison: bool = False) -> None:
        super().__init__()
        self.hollow, self.poison = hollow, poison
        self.raw_pointers: dict[int, Any] = {}
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
            return self._hollow(func, args, kwargs)
        result = func(*args, **kwargs)
        if self.poison and func in _UNINITIALISED:
            poison(result)
        return result

    def _hollow(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = getattr(func, "__name__", "")
        if func in _DRAWS and not any(isinstance(a, torch.Tensor) for a in args):
            kwargs.pop("generator", None)
            if func is not torch.normal:
                return _zeros(
                    torch.empty(*args, **{**kwargs, "device": "meta"}), kwargs.get("requires_grad", False)
                )
        if func in _DRAWS_LIKE:
            kwargs.pop("memory_format", None)
            return _zeros(
                torch.empty(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype, device="meta"),
                kwargs.get("requires_grad", False),
            )
        drawn = kwargs.get("tensor", args[0] if args else None)
        of_init = getattr(func, "__module__", "") == torch.nn.init.__name__
        if (name in ("normal_", "uniform_") or of_init) and isinstance(drawn, torch.Tensor):
            return drawn
        if name not in _OF_THE_TENSOR and any(_is_large(a) for a in args):
            made = _untouched(func, args, kwargs)
            if made is not None:
                return made
        return func(*args, **kwargs)


def _is_large(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.numel() * value.element_size() > _LARGE
        and not value.requires_grad
        and not value.is_meta
    )


def _untouched(func: Any, args: Any, kwargs: Any) -> Any:
    """Return zeros in place of what ``func`` would compute on large tensors; None where it computes no new tensor.

    Which shape and type that has is found on meta tensors. What changes its first argument leaves it as it is; views,
    other results that are an argument, and numbers are left to the function itself.
    """
    name = getattr(func, "__name__", "")
    if name.endswith("_") and not name.endswith("__") and isinstance(args[0], torch.Tensor):
        return args[0]
    if name == "to":  # the shadow has no device to go to
        args = tuple(a for a in args if not isinstance(a, torch.device))
        kwargs = {n: v for n, v in kwargs.items() if n != "device"}
    shadows: dict[int, Any] = {}

    def shadow(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(shadow(v) for v in value)
        if not isinstance(value, torch.Tensor):
            return value
        made = value.to("meta")
        shadows[made.untyped_storage()._cdata] = made
        return made

    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            result = func(*(shadow(a) for a in args), **{n: shadow(v) for n, v in kwargs.items()})
            if not isinstance(result, torch.Tensor) or not result.is_meta:
                return None
            if result.untyped_storage()._cdata in shadows:
                return None
            return _zeros(result)
    except Exception:  # it has no shape without values, or is no function of tensors
        return None


def _zeros(like: Any, requires_grad: bool = False) -> Any:
    """Zeros of the shape and type of a meta tensor, in pages that the system hands out when they are touched."""
    nbytes = like.numel() * like.element_size()
    pages = np.zeros(nbytes + _ALIGNMENT, np.uint8)
    start = -pages.ctypes.data % _ALIGNMENT
    flat = torch.from_numpy(pages)[start : start + nbytes].view(like.dtype)
    return flat.reshape(like.shape).requires_grad_(requires_grad)


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
    """NaN, also in what is computed from it. A count made of it is 0, so that code that times itself comes to an end:
    ``max(1, int(budget / time))`` runs."""

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


#: The internals of torch that code generated by its compiler uses.
_COMPILED: tuple[tuple[Any, dict[str, Any]], ...] = (
    (torch._C, {"_cuda_getCurrentRawStream": lambda device: 0}),
    (
        torch._C._dynamo.guards,
        {"_empty_strided_cuda": lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype)},
    ),
)


@contextlib.contextmanager
def gpu_on_cpu(target: GpuTarget, *, hollow: bool = False, poison: bool = True) -> Iterator[GpuOnCpu]:
    """Install the redirect for ``target``; on leaving, everything is as before.

    ``poison`` fills what ``torch.empty`` and its kin return.
    """
    saved: list[tuple[Any, str, Any]] = []
    versions = {"cuda": None, "hip": "6.4"} if target.backend == "hip" else {"cuda": "12.8", "hip": None}
    mode = GpuOnCpu(hollow, poison)
    try:
        stubbed = (
            (torch.cuda, _stubs(target)), (torch.version, versions), (torch, {"Generator": _HostGenerator}), *_COMPILED,
        )  # fmt: skip
        for owner, stubs in stubbed:
            for name, value in stubs.items():
                saved.append((owner, name, getattr(owner, name, _ABSENT)))
                setattr(owner, name, value)
        with mode:
            yield mode
    finally:
        for owner, name, value in reversed(saved):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
