"""The programs and versions that compile a kernel: ptxas, cuobjdump and nvdisasm from Triton's wheel."""

from __future__ import annotations

from accelopt_profiling.targets import GpuTarget


def versions(target: GpuTarget) -> dict[str, str]:
    """Triton's version and, for NVIDIA, that of the ptxas it uses for the architecture.

    Triton takes ``ptxas-blackwell`` from compute capability 10.0 on (3.9: from 9.0 on) and ``ptxas`` below; which
    one counts is asked from Triton itself.
    """
    import triton

    found = {"triton": triton.__version__}
    if target.backend == "cuda":
        from triton.backends.nvidia.compiler import get_ptxas

        tool = get_ptxas(int(target.arch))
        found["ptxas"] = str(tool.version)
    return found


def cuda_tool(name: str) -> str:
    """The path of "cuobjdump" or "nvdisasm", as Triton finds it (its wheel, or ``TRITON_<NAME>_PATH``)."""
    from triton import knobs

    return str(getattr(knobs.nvidia, name).path)
