"""A program: load one kernel file and its problem, make one call on the device, and tell what the driver says of its
Triton kernels. It is what ``ncu`` runs. Arguments: the kernel file and the problem file.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_benchmarks.device.programs import FACTS, answer, entry_of


def load(path: Path) -> ModuleType:
    """Import a file by its own name, under which a problem may import its kernel. What it raises goes through."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def called(path: Path, module: ModuleType, problem: ModuleType) -> Any:
    """Call the function of the kernel file that takes the problem's inputs."""
    given = list(problem.get_inputs())
    return getattr(module, entry_of(path.read_text(encoding="utf-8"), len(given)))(*given)


def compiled_kernels(module: ModuleType) -> dict[str, dict[str, Any]]:
    """Return what the driver said of each Triton kernel that was loaded: registers and spilled words per
    thread, shared memory in bytes. Triton keeps them in a dictionary per device, whose form has changed
    between its versions."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in vars(module).items():
        function = getattr(value, "fn", value) if not hasattr(value, "device_caches") else value
        for kept in getattr(function, "device_caches", {}).values():
            cache = kept[0] if isinstance(kept, tuple) else kept
            for kernel in getattr(cache, "values", list)():
                if getattr(kernel, "n_regs", None) is not None:
                    shared = getattr(getattr(kernel, "metadata", None), "shared", None)
                    told = {
                        "registers": kernel.n_regs,
                        "spills": getattr(kernel, "n_spills", None),
                        "shared": shared,
                    }
                    found[name] = told
    return found


def main() -> None:
    import torch

    path, problem = Path(sys.argv[1]), Path(sys.argv[2])
    module = load(path)
    called(path, module, load(problem))
    torch.cuda.synchronize()
    answer(FACTS, compiled_kernels(module))


if __name__ == "__main__":
    main()
