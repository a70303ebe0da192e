"""Find names with no honest use in a kernel file: modules, functions, dunder attributes, the tool that checks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.facts import Facts, StaticFinding, at
from accelopt_profiling.gate.reading.vocabulary import WORDS, rule_for

_LOOKING = ("sys.", "os.", "importlib", "inspect", "__file__")
_THE_GATE = "It looks for the tool that checks it"


def forbidden(facts: Facts, node: ast.AST) -> Iterator[StaticFinding]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names, level=0):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for name in (module + alias.name for alias in names):
                if rule := rule_for(name):
                    yield at(
                        node,
                        rule[0],
                        subject=f"import {name}",
                        message=f"It imports {name}.",
                        certain=rule[1],
                    )
        case ast.Constant(str() as text):
            yield from _text(facts, node, text)
        case ast.Constant(bytes() as data):
            yield from _asks_for_a_device(facts, node, data.decode("latin-1"))
        case ast.Name() | ast.Attribute():
            is_end = not isinstance(
                facts.parents.get(node), ast.Attribute
            )  # a chain is one name, from its end
            dotted = facts.dotted(node) if is_end and isinstance(node.ctx, ast.Load) else None
            if dotted and (rule := rule_for(dotted)):
                yield at(node, rule[0], subject=dotted, message=f"It uses {dotted}.", certain=rule[1])
            yield from _inside(node)


def _inside(node: ast.AST) -> Iterator[StaticFinding]:
    """Yield accesses to insides of Python, of the emulation and of memory."""
    match node:
        case ast.Name("__builtins__" | "__loader__" | "__spec__" as name):
            yield at(node, "reads-the-gate", subject=name, message=f"It uses {name}.", certain=True)
        case ast.Attribute(attr=name) if "accelopt" in name.lower():
            yield at(
                node, "reads-the-gate", subject=f".{name}", message=f"{_THE_GATE} (`.{name}`).", certain=True
            )
        case ast.Attribute(attr=name) if name in WORDS["insides"]:
            yield at(
                node,
                "reads-the-gate",
                subject=f".{name}",
                message=f"It reaches into `.{name}`.",
                certain=True,
            )
        case ast.Attribute(ast.Attribute(attr="block"), "storage" | "coverage" | "releases" as name):
            yield at(
                node,
                "reads-the-gate",
                subject=f".block.{name}",
                message=f"It reaches into `.block.{name}`.",
                certain=True,
            )
        case ast.Attribute(attr="data_ptr" | "__array_interface__" | "__cuda_array_interface__" as name):
            yield at(node, "reads-address", name, f"It looks at an address (`.{name}`).")


def _text(facts: Facts, node: ast.Constant, text: str) -> Iterator[StaticFinding]:
    """Yield a text with the name of this project, where it is more than a text: beside a look at modules or
    variables."""
    if "accelopt" in text.lower():
        beside = (n for n in ast.walk(facts.statement_of(node)) if isinstance(n, (ast.Attribute, ast.Name)))
        if text.startswith("_accelopt") or any((facts.dotted(n) or "").startswith(_LOOKING) for n in beside):
            yield at(node, "reads-the-gate", subject="accelopt", message=f"{_THE_GATE}.", certain=True)
    yield from _asks_for_a_device(facts, node, text)


def _asks_for_a_device(facts: Facts, node: ast.Constant, text: str) -> Iterator[StaticFinding]:
    """Yield a text that names Triton's switch for interpretation, or a device's file, where it is not merely set."""
    is_switch = "INTERPRET" in text and text == text.upper() and " " not in text
    match facts.parents.get(node):
        case ast.Subscript(ctx=ast.Store()) | ast.Expr():
            pass
        case _ if is_switch or text.startswith(WORDS["device_files"]):
            message = f"It asks whether kernels run on a device ({text})."
            yield at(node, "reads-the-gate", subject=text, message=message, certain=True)
