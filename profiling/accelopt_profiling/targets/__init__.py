"""Hardware facts: one JSON file per target, with a source beside each number."""

from accelopt_profiling.targets.target import (
    Figure,
    GpuTarget,
    Target,
    UnknownTargetError,
    load_gpu,
    load_target,
    target_names,
)

__all__ = ["Figure", "GpuTarget", "Target", "UnknownTargetError", "load_gpu", "load_target", "target_names"]
