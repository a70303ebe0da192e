"""Name another engine for work that several can do: VectorE and ScalarE and, in SBUF, GpSimdE."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.nki.elementwise import scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel, element
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import root_name
from accelopt_profiling.nki.operations.table import operations
from accelopt_profiling.targets.target import load_target

#: What ScalarE's scale and bias compute, in this order.
_ON_SCALAR = (["multiply"], ["add"], ["multiply", "add"])

_NAMES = {"vector": "VectorE", "scalar": "ScalarE", "gpsimd": "GpSimdE"}


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    bound = kernel.subject.measurement.bound if kernel.subject.measurement else None
    if kernel.dialect.mutates:
        if bound not in ("ScalarE", "TensorE"):
            yield from _moved(kernel)
        return
    for idle, busy in (("vector", "ScalarE"), ("scalar", "VectorE")):
        if bound in ("VectorE", "ScalarE") and bound != busy:
            continue
        engine = kernel.spelled(f"{NISA}.{idle}_engine")
        for instruction in kernel.instructions:
            text = None if engine is None else _named(kernel, instruction, engine)
            if text is not None:
                edit = kernel.source.replace_with_parentheses(instruction.call, text)
                line = kernel.source.line(instruction.call)
                summary = f"Do line {line} on {_NAMES[idle]}, not where the compiler puts it."
                yield Rewrite((edit,), summary, moves={f"{busy} busy": "down"})


def _moved(kernel: NkiKernel) -> Iterator[Rewrite]:
    """Yield each instruction of VectorE on another engine, in today's dialect."""
    for engine in ("scalar", "gpsimd"):
        word = kernel.spelled(f"{NISA}.engine.{engine}")
        for instruction in kernel.instructions:
            call = instruction.call
            if word is None or engine not in _other_engines(instruction) or not isinstance(call, cst.Call):
                continue
            fits = _on_chip_only(kernel, instruction) if engine == "gpsimd" else _scales(kernel, instruction)
            if instruction.get("engine") is None and instruction.statement is not None and fits:
                at = kernel.source.end(call.args[-1].value)
                edits = kernel.source.added(kernel.source.start(call.args[-1]), at, [f"engine={word}"])
                line = kernel.source.line(call)
                summary = f"Do line {line} on {_NAMES[engine]} instead of VectorE."
                yield Rewrite(tuple(edits), summary, moves={"VectorE busy": "down"})


def _other_engines(instruction: NkiCall) -> tuple[str, ...]:
    """Return the engines that an instruction can be moved to from VectorE, where it runs if none is named."""
    row = operations()[instruction.path]
    return (*row.engines[1:], *row.also) if row.engines[:1] == ("vector",) else ()


def _scales(kernel: NkiKernel, instruction: NkiCall) -> bool:
    """Return whether ScalarE can do it on its way: a copy, from trn2 on, or a scale and a bias."""
    if instruction.path == f"{NISA}.tensor_copy":
        generation = load_target(kernel.subject.target or "trn1").data["generation"]
        return generation >= 3 and kind(kernel, instruction["src"]) != "column"
    steps = scalar_steps(kernel, instruction)
    return (
        steps is not None
        and kind(kernel, steps.data) == "tile"
        and [step.op for step in steps.steps] in _ON_SCALAR
    )


def _on_chip_only(kernel: NkiKernel, instruction: NkiCall) -> bool:
    """Return whether all tiles certainly lie in SBUF: GpSimdE does not reach PSUM."""
    tiles = [instruction.destination, *instruction.args.values()]
    operands = [t for t in tiles if t is not None and kind(kernel, t) in ("tile", "column")]
    return bool(operands) and all(_in_sbuf(kernel, t) for t in operands)


def _in_sbuf(kernel: NkiKernel, node: cst.BaseExpression) -> bool:
    name = root_name(element(kernel, node))
    allocation = kernel.flow.allocation(name) if name else None
    instruction = kernel.instruction(allocation.value) if allocation and allocation.value else None
    buffer = instruction.get("buffer") if instruction else None
    return instruction is not None and (buffer is None or kernel.path(buffer) == f"{NL}.sbuf")


def _named(kernel: NkiKernel, instruction: NkiCall, engine: str) -> str | None:
    """Return the instruction with its engine. None where it has one, or where only one engine can do it."""
    if instruction.statement is None or kernel.code(instruction.get("engine")) is not None:
        return None
    keywords = {"dtype": kernel.code(instruction.get("dtype")), "mask": kernel.code(instruction.get("mask"))}
    if instruction.path in (f"{NL}.copy", f"{NISA}.tensor_copy"):
        if kind(kernel, instruction["src"]) == "column":
            return None
        return kernel.spell(
            "nisa.tensor_copy", kernel.source.code(instruction["src"]), **keywords, engine=engine
        )
    steps = scalar_steps(kernel, instruction)
    if (
        steps is None
        or kind(kernel, steps.data) != "tile"
        or any(step.op == "divide" for step in steps.steps)
    ):
        return None
    arguments: dict[str, str | None] = {}
    for number, step in enumerate(steps.steps):
        arguments[f"op{number}"] = kernel.spelled(f"{NL}.{step.op}")
        arguments[f"operand{number}"] = kernel.source.code(step.operand)
        arguments[f"reverse{number}"] = "True" if step.reverse else None
    if any(arguments[f"op{number}"] is None for number in range(len(steps.steps))):
        return None
    return kernel.spell(
        "nisa.tensor_scalar", kernel.source.code(steps.data), **arguments, **keywords, engine=engine
    )
