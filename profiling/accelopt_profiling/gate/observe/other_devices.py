"""Other devices than a check's target: their answers to code that asks what it runs on, and who asks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelopt_profiling.targets import GpuTarget, load_gpu

#: A device newer than most, and the one in its place where that is the target, for each of Triton's backends.
_NEWER = {"cuda": ("b200", "rtx5090"), "hip": ("mi355x", "mi300x")}
#: The smallest device for which Triton compiles: NVIDIA's Jetson Orin Nano 4GB has 4 processors of capability 8.7.
_FEW, _SMALL_ARCH = 4, 87
#: Functions of ``torch.cuda`` that tell what the device is.
_QUESTIONS = ("get_device_name", "get_device_capability", "get_device_properties", "get_arch_list")
#: Code of Triton's and torch's own that asks for each launch.
_LIBRARIES = ("triton/runtime/", "triton/compiler/", "triton/backends/", "/torch/")


def other_devices(target: str) -> dict[str, GpuTarget]:
    """Return a newer and a small device besides the ``target``, by name."""
    gpu = load_gpu(target)
    newer = next(name for name in _NEWER[gpu.backend] if load_gpu(name).arch != gpu.arch)
    processors = replace(gpu.figures["multiprocessors"], value=_FEW)
    small = replace(
        gpu,
        name="small device",
        title=f"A GPU with {_FEW} processors",
        arch=_SMALL_ARCH if gpu.backend == "cuda" else gpu.arch,
        figures={**gpu.figures, "multiprocessors": processors},
    )
    return {"newer device": load_gpu(newer), "small device": small}


@contextmanager
def noting_questions(driver: Any, note: Callable[[], None]) -> Iterator[None]:
    """Call ``note`` whenever somebody else than a launch asks in the body what the device is."""
    import torch

    def noted(answer: Callable[..., Any]) -> Callable[..., Any]:
        def answered(*arguments: Any, **options: Any) -> Any:
            asking = Path(sys._getframe(1).f_code.co_filename).as_posix()
            if not any(place in asking for place in _LIBRARIES):
                note()
            return answer(*arguments, **options)

        return answered

    for owner, name in ((driver, "get_current_target"), (driver, "get_device_capability"),
                        (driver.utils, "get_device_properties")):  # fmt: skip
        setattr(owner, name, noted(getattr(owner, name)))  # of this session alone
    before = {name: getattr(torch.cuda, name) for name in _QUESTIONS}
    try:
        for name, answer in before.items():
            setattr(torch.cuda, name, noted(answer))
        yield
    finally:
        for name, answer in before.items():
            setattr(torch.cuda, name, answer)
