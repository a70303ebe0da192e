"""Move element-wise work from the busy one of VectorE and ScalarE to the other."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.elementwise import activation, pair, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    bound = (kernel.subject.measurement.bound or "").lower() if kernel.subject.measurement else ""
    directions = [("VectorE", "ScalarE", _on_scalar), ("ScalarE", "VectorE", _on_vector)]
    for busy, idle, move in directions:
        if bound and busy.lower() not in bound and any(e in bound for e in ("vectore", "scalare")):
            continue
        moved = [(i, edit) for i in kernel.instructions if (edit := move(kernel, i)) is not None]
        for instruction, edit in moved:
            line = kernel.source.line(instruction.call)
            yield Rewrite((edit,), f"Move line {line} from {busy} to {idle}.", moves={f"{busy} busy": "down"})


def _on_scalar(kernel: NkiKernel, instruction: NkiCall) -> ByteEdit | None:
    """Return a VectorE instruction as an activation: a multiply as its scale, a square, a copy."""
    if instruction.statement is None or kernel.code(instruction.get("engine")) not in (
        None,
        *_unknown(kernel),
    ):
        return None
    op, scale = "copy", None
    steps, both = scalar_steps(kernel, instruction), pair(kernel, instruction)
    if kernel.dialect.mutates and both is None:
        return None  # the same instruction can name its engine
    if steps is not None:
        if len(steps.steps) != 1 or steps.steps[0].op != "multiply" or kind(kernel, steps.data) != "tile":
            return None
        data, scale = steps.data, kernel.source.code(steps.steps[0].operand)
    elif both is not None:
        if both.op != "multiply" or not kernel.source.same(both.left, both.right):
            return None
        op, data = "square", both.left
    elif instruction.path in (f"{NL}.copy", f"{NISA}.tensor_copy"):
        data = instruction["src"]
    else:
        return None
    return _as(
        kernel,
        instruction,
        kernel.respelled(
            instruction,
            "nisa.activation",
            op=kernel.spelled(f"{NL}.{op}"),
            data=kernel.source.code(data),
            scale=scale,
            mask=kernel.code(instruction.get("mask")),
            dtype=kernel.code(instruction.get("dtype")),
        ),
    )


def _on_vector(kernel: NkiKernel, instruction: NkiCall) -> ByteEdit | None:
    """Return a ScalarE instruction on VectorE: a square as a multiply, a scaled copy as ``tensor_scalar``."""
    function = activation(kernel, instruction)
    if instruction.statement is None or function is None or function.bias is not None:
        return None
    data, multiply = kernel.source.code(function.data), kernel.spelled(f"{NL}.multiply")
    keywords = {"mask": kernel.code(instruction.get("mask")), "dtype": kernel.code(instruction.get("dtype"))}
    if multiply is None:
        return None
    if function.op == "square" and function.scale is None:
        return _as(
            kernel,
            instruction,
            kernel.respelled(instruction, "nisa.tensor_tensor", data, data, op=multiply, **keywords),
        )
    if function.op == "copy" and function.scale is not None:
        scale = kernel.source.code(function.scale)
        return _as(
            kernel,
            instruction,
            kernel.respelled(instruction, "nisa.tensor_scalar", data, multiply, scale, **keywords),
        )
    return None


def _unknown(kernel: NkiKernel) -> list[str]:
    spelled = kernel.spelled(f"{NISA}.unknown_engine")
    return [s for s in (spelled, "nki.isa.unknown_engine", "nisa.unknown_engine") if s]


def _as(kernel: NkiKernel, instruction: NkiCall, text: str | None) -> ByteEdit | None:
    return None if text is None else kernel.source.replace_with_parentheses(instruction.call, text)
