"""Run NKI kernels given as text on the emulator, so that the line numbers of their findings are known."""

from __future__ import annotations

import linecache
import textwrap
from dataclasses import dataclass
from typing import Any

from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.data.instruction import Trace
from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.emulator.machine import Mode
from accelopt_profiling.nki.install import emulated

#: The lines in front of every kernel's body: the body starts on line 8.
HEAD = """\
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def kernel({arguments}):
"""
#: The file that the text seems to come from: whoever asks for its lines gets them.
FILE = "kernel_under_test.py"
FIRST_LINE = HEAD.count("\n") + 1


@dataclass
class Outcome:
    result: Any
    trace: Trace
    findings: list[Finding]
    fault: KernelFaultError | None = None


def run(
    body: str,
    *inputs: Any,
    mode: Mode = "full",
    limits: CoreLimits | None = None,
    head: str = HEAD,
    order: int | None = None,
) -> Outcome:
    """Run a kernel whose arguments are ``a``, ``b``, ``c``... and whose body is ``body``; with the iterations of its
    free loops in an ``order``.
    """
    arguments = ", ".join("abcdefgh"[: len(inputs)])
    text = (
        head.format(arguments=arguments) + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    )
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    with emulated(mode, limits=limits, order=order) as emulation:
        space: dict[str, Any] = {}
        exec(compile(text, FILE, "exec"), space)  # noqa: S102
        fault, result = None, None
        try:
            result = space["kernel"](*inputs)
        except KernelFaultError as raised:
            fault = raised
        machine = emulation.machines[-1]
    return Outcome(result, machine.trace, machine.findings, fault)
