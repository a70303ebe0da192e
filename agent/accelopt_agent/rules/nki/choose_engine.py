"""Name the engine of work that the compiler puts on the busy one: VectorE and ScalarE both do it."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.nki.elementwise import scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    bound = subject.measurement.bound if subject.measurement else None
    for idle, busy in (("vector", "ScalarE"), ("scalar", "VectorE")):
        if bound in ("VectorE", "ScalarE") and bound != busy:
            continue
        engine = kernel.names.spelled(f"{NISA}.{idle}_engine")
        for instruction in kernel.instructions:
            text = None if engine is None else _named(kernel, instruction, engine)
            if text is not None:
                edit = kernel.source.replace_with_parentheses(instruction.call, text)
                line = kernel.source.line(instruction.call)
                summary = f"Do line {line} on {idle.capitalize()}E, not where the compiler puts it."
                yield Rewrite((edit,), summary, moves={f"{busy} busy": "down"})


def _named(kernel: NkiKernel, instruction: NkiCall, engine: str) -> str | None:
    """Return the instruction with its engine; None where it has one, or where only one engine can do it."""
    if instruction.statement is None or kernel.code(instruction.get("engine")) is not None:
        return None
    keywords = {"dtype": kernel.code(instruction.get("dtype")), "mask": kernel.code(instruction.get("mask"))}
    if instruction.path in (f"{NL}.copy", f"{NISA}.tensor_copy"):
        if kind(kernel, instruction["src"]) == "column":
            return None
        return kernel.spell(
            "nisa.tensor_copy", kernel.source.code(instruction["src"]), **keywords, engine=engine
        )
    found = scalar_steps(kernel, instruction)
    if (
        found is None
        or kind(kernel, found.data) != "tile"
        or any(step.op == "divide" for step in found.steps)
    ):
        return None
    arguments: dict[str, str | None] = {}
    for number, step in enumerate(found.steps):
        arguments[f"op{number}"] = kernel.names.spelled(f"{NL}.{step.op}")
        arguments[f"operand{number}"] = kernel.source.code(step.operand)
        arguments[f"reverse{number}"] = "True" if step.reverse else None
    if any(arguments[f"op{number}"] is None for number in range(len(found.steps))):
        return None
    return kernel.spell(
        "nisa.tensor_scalar", kernel.source.code(found.data), **arguments, **keywords, engine=engine
    )
