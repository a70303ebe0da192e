"""The device interface that timing needs, and its implementation on torch's CUDA interface (ROCm builds included).

Not yet run on a device.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Event(Protocol):
    def record(self) -> None:
        """Mark this point of the current stream."""

    def synchronize(self) -> None:
        """Wait until the device has passed the mark."""

    def elapsed_time(self, end: Any) -> float:
        """Return the milliseconds from this event to ``end``; both must have completed."""


class Device(Protocol):
    """``name`` as the driver says it."""

    name: str

    def event(self) -> Event:
        """Return a new event that can be timed."""

    def synchronize(self) -> None:
        """Wait until every stream of the device is idle."""

    def empty_caches(self) -> None:
        """Overwrite the L2 cache, and give up what was set aside in it to persist; returns once that is done."""

    def capturing(self) -> bool:
        """Check whether a graph is being captured on the current stream: events must not be recorded then."""


#: What is overwritten on AMD's devices: MI300's Infinity Cache holds 256 MB that the driver does not count as L2.
_SCRATCH_ON_AMD = 512 << 20


class TorchDevice:
    """The current device of ``torch.cuda``.

    ``identifier`` is what ``nvidia-smi`` and ``rocm-smi`` know it by, whatever CUDA_VISIBLE_DEVICES says; None where
    torch does not tell.
    """

    def __init__(self, torch: Any) -> None:
        # bound now: what user code puts in their place later, also on the class of events, is not used
        kind = torch.cuda.Event
        self._make, self._methods = kind, (kind.record, kind.synchronize, kind.elapsed_time)
        self._synchronize = torch.cuda.synchronize
        self._capturing = torch.cuda.is_current_stream_capturing
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.name = str(properties.name)
        on_amd = torch.version.hip is not None
        self.identifier = pci_address_of(properties) if on_amd else identifier_of(properties)
        cache = int(getattr(properties, "L2_cache_size", 0) or 64 << 20)
        scratch = torch.empty(_SCRATCH_ON_AMD if on_amd else 2 * cache, dtype=torch.int8, device="cuda")
        self._overwrite = scratch.zero_
        self._reset_persisting = _persisting_reset()

    def event(self) -> Event:
        return _BoundEvent(self._make(enable_timing=True), *self._methods)

    def synchronize(self) -> None:
        self._synchronize()

    def empty_caches(self) -> None:
        # an ordinary overwrite leaves persisting lines where they are
        self._reset_persisting()
        self._overwrite()
        self.synchronize()

    def capturing(self) -> bool:
        return bool(self._capturing())


@dataclass(frozen=True)
class _BoundEvent:
    """An event with the methods that its class had before user code was loaded."""

    made: Any
    _record: Callable[[Any], Any]
    _synchronize: Callable[[Any], Any]
    _elapsed_time: Callable[[Any, Any], float]

    def record(self) -> None:
        self._record(self.made)

    def synchronize(self) -> None:
        self._synchronize(self.made)

    def elapsed_time(self, end: _BoundEvent) -> float:
        return self._elapsed_time(self.made, end.made)


def identifier_of(properties: Any) -> str | None:
    """Return the UUID of a device as ``nvidia-smi --id`` takes it."""
    uuid = str(getattr(properties, "uuid", "") or "")
    if not uuid:
        return None
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def pci_address_of(properties: Any) -> str | None:
    """Return the PCI address of a device as ``rocm-smi --showbus`` tells it. None where torch does not."""
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    numbers = [part for part in parts if isinstance(part, int)]
    return "{:04x}:{:02x}:{:02x}.0".format(*numbers) if len(numbers) == len(parts) else None


def _persisting_reset() -> Any:
    """Return the CUDA driver's ``cuCtxResetPersistingL2Cache``; where there is none (ROCm), nothing
    persists."""
    with contextlib.suppress(OSError, AttributeError):
        return ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache
    return lambda: 0
