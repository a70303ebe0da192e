"""Registers, stack and spills of a compiled kernel, as the compiler reports them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass

_USAGE = re.compile(r"\b(REG|STACK|SHARED|LOCAL):(\d+)")
_DEPOT = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+\S*depot\S*\[(\d+)\]")
_AMD = re.compile(
    r"^\s*(?:- )?\.(vgpr_count|sgpr_count|vgpr_spill_count|private_segment_fixed_size):\s+(\d+)", re.M
)


class ResourcesUnknown(RuntimeError):
    """The compiler's report could not be had. The message says why."""


@dataclass(frozen=True)
class Resources:
    """Per thread: ``registers``, ``stack_bytes``, and the part of the stack that holds spilled registers."""

    registers: int
    stack_bytes: int
    spill_bytes: int
    scalar_registers: int | None = None


def cubin_resources(cubin: bytes, ptx: str, cuobjdump: str, *, timeout: float = 20.0) -> Resources:
    """Resources of an NVIDIA cubin through ``cuobjdump -res-usage`` (5 to 12 ms).

    ptxas puts spilled registers on the stack, beside the local arrays the PTX declares (``__local_depot``): what is
    left of the stack after those is spills.

    Raises:
        ResourcesUnknown: cuobjdump is missing, failed or printed something else.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            command = [cuobjdump, "-res-usage", file.name]
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResourcesUnknown(f"cuobjdump did not finish: {error}") from error
    usage = {key: int(value) for key, value in _USAGE.findall(done.stdout)}
    if done.returncode != 0 or "REG" not in usage:
        raise ResourcesUnknown(
            f"cuobjdump -res-usage gave no registers: {(done.stderr or done.stdout).strip()[:300]}"
        )
    stack = usage.get("STACK", 0) + usage.get("LOCAL", 0)
    declared = sum(int(size) for size in _DEPOT.findall(ptx))
    return Resources(usage["REG"], stack, max(0, stack - declared))


def amdgcn_resources(amdgcn: str) -> Resources:
    """Resources of an AMD kernel from the metadata at the end of its assembly.

    ``registers`` are vector registers, accumulation registers included. A spilled vector register is 4 bytes; what
    the compiler spilled into accumulation registers is not in memory and not counted.

    Raises:
        ResourcesUnknown: the text has no such metadata.
    """
    found = {key: int(value) for key, value in _AMD.findall(amdgcn)}
    if "vgpr_count" not in found:
        raise ResourcesUnknown("the assembly has no .vgpr_count")
    stack = found.get("private_segment_fixed_size", 0)
    spilled = min(stack, 4 * found.get("vgpr_spill_count", 0))
    return Resources(found["vgpr_count"], stack, spilled, found.get("sgpr_count"))
