"""Triton kernels without a GPU: capture, interpretation, counting, compilation, estimates."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from accelopt_profiling.triton.capture.session import CaptureSession


def emulated(
    target: str, mode: Literal["capture", "execute"] = "capture", **options: Any
) -> AbstractContextManager[CaptureSession]:
    """``install.emulated``, which see; imported only now because it needs torch and triton."""
    from accelopt_profiling.triton.capture import install

    return install.emulated(target, mode, **options)
