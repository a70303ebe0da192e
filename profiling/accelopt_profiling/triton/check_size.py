"""How much a check of results takes, so that one which does not fit is made at smaller sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_profiling.triton.capture.session import LaunchExecution
from accelopt_profiling.triton.hints import amount, size
from accelopt_profiling.triton.interpreter.counting import LaunchCounts
from accelopt_profiling.triton.interpreter.work import OPERATION, PRODUCTS, SECOND

#: The largest check: bytes of the tensors, operations of the launches (the reference does as many, in float64), and
#: work of interpreting one program. Our choice, for a check of some seconds on two cores.
MOST_BYTES, MOST_OPERATIONS, MOST_WORK = 256 << 20, 2e10, SECOND // 2


@dataclass(frozen=True)
class CheckSize:
    """Bytes of tensors, operations of all launches, and work of interpreting the longest program."""

    tensor_bytes: float
    operations: float
    work: float

    @property
    def fits(self) -> bool:
        return (
            self.tensor_bytes <= MOST_BYTES and self.operations <= MOST_OPERATIONS and self.work <= MOST_WORK
        )

    @property
    def excess(self) -> str:
        """Why it does not fit, to be read after "at the full size"."""
        if self.tensor_bytes > MOST_BYTES:
            return f"its tensors take {size(self.tensor_bytes)}"
        if self.operations > MOST_OPERATIONS:
            return f"its launches take {amount(self.operations)}operations"
        return "its loops are too long to be interpreted"


def check_size(executions: Sequence[LaunchExecution], input_bytes: int) -> CheckSize:
    """Estimate the check of a run from its counted launches and the bytes of its inputs."""
    counted = [e.counts for e in executions if e.counts is not None and e.counts.sampled]
    return CheckSize(
        max([input_bytes, *(sum(c.tensor_bytes.values()) for c in counted)]),
        sum(_operations(c) for c in counted),
        max((_work(c) for c in counted), default=0.0),
    )


def _operations(counts: LaunchCounts) -> float:
    lines = counts.lines.values()
    sampled = sum(x.float_ops + x.special + sum(x.mma_flops.values()) for x in lines)
    return sampled * counts.programs / counts.sampled


def _work(counts: LaunchCounts) -> float:
    lines = counts.lines.values()
    elements = sum(
        x.float_ops + x.int_ops + x.special + x.lanes + sum(x.mma_flops.values()) / (2 * PRODUCTS)
        for x in lines
    )
    return (OPERATION * counts.steps + elements) / counts.sampled
