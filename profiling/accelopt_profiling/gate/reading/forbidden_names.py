"""Find names with no honest use in a kernel file (modules, functions, dunder attributes), and low-precision formats."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from importlib import resources

from accelopt_profiling.gate.reading.names import ResolvedNames, StaticFinding

#: Attributes through which code gets at frames, other functions' insides or the emulation.
_INSIDES = frozenset(
    [
        "f_back", "f_locals", "f_globals", "f_builtins", "tb_frame", "gi_frame", "cr_frame", "ag_frame",
        "__globals__", "__builtins__", "__closure__", "cell_contents", "__code__", "co_code", "__subclasses__",
        "__mro__", "__bases__", "__getattribute__", "__reduce__", "__reduce_ex__", "__loader__", "__spec__",
        "__file__", "__cached__", "__path__",
        "_getframe", "findCaller", "__torch_function__", "__torch_dispatch__", "__array_ufunc__", "__array_function__",
    ]
)  # fmt: skip
#: Files that are there where a device is. What names them asks whether kernels run on one.
_DEVICE_FILES = (
    "/dev/nvidia",
    "/dev/kfd",
    "/dev/dri",
    "/dev/neuron",
    "/proc/driver/nvidia",
    "/sys/class/neuron",
)
#: Attributes of the emulation's own objects.
_EMULATION = frozenset(["storage", "coverage", "releases"])


@cache
def _rules() -> list[tuple[str, str, bool]]:
    """(dotted name, code, certain), longest names first."""
    data = json.loads(resources.files(__package__).joinpath("rules.json").read_text(encoding="utf-8"))
    rules = [
        (name, code, kind == "certain")
        for kind in ("certain", "told")
        for code, names in data[kind].items()
        for name in names
    ]
    return sorted(rules, key=lambda rule: -len(rule[0]))


def rule_for(dotted: str) -> tuple[str, bool] | None:
    """Return the code for a dotted name, and whether it is certain; None where it is harmless."""
    for name, code, certain in _rules():
        if dotted == name or dotted.startswith(f"{name}."):
            return code, certain
    return None


def reaching(names: ResolvedNames) -> Iterator[StaticFinding]:
    """Yield imports and uses of what ``rules.json`` lists, and accesses to insides of Python or of the emulation."""
    for node in ast.walk(names.tree):
        yield from _imports(node)
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load):
            parent = names.parents.get(node)
            if isinstance(parent, ast.Attribute):
                continue  # the whole chain is looked at once, from its end
            dotted = names.dotted(node)
            if dotted and (rule := rule_for(dotted)):
                yield StaticFinding(rule[0], dotted, node.lineno, f"It uses {dotted}.", rule[1])
        if isinstance(node, ast.Attribute):
            yield from _insides(names, node)
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "accelopt" in node.value.lower()
        ):
            yield from _looks_for_the_gate(names, node)
        if isinstance(node, ast.Constant):
            yield from _asks_for_a_device(names, node)
        if isinstance(node, ast.Name) and node.id in ("__builtins__", "__loader__", "__spec__"):
            yield StaticFinding("reads-the-gate", node.id, node.lineno, f"It uses {node.id}.", True)


def _looks_for_the_gate(names: ResolvedNames, node: ast.Constant) -> Iterator[StaticFinding]:
    """Yield a text with the name of this project, where it is more than a text: beside a look at modules or
    variables."""
    statement: ast.AST = node
    while not isinstance(statement, ast.stmt) and statement in names.parents:
        statement = names.parents[statement]
    if str(node.value).startswith("_accelopt"):
        yield StaticFinding(
            "reads-the-gate", "accelopt", node.lineno, "It looks for the tool that checks it.", True
        )
    looked = {names.dotted(n) for n in ast.walk(statement) if isinstance(n, (ast.Attribute, ast.Name))}
    if any(d and d.startswith(("sys.", "os.", "importlib", "inspect", "__file__")) for d in looked):
        yield StaticFinding(
            "reads-the-gate", "accelopt", node.lineno, "It looks for the tool that checks it.", True
        )


def _asks_for_a_device(names: ResolvedNames, node: ast.Constant) -> Iterator[StaticFinding]:
    """Yield a text that names Triton's switch for interpretation, or a device's file, where it is not merely
    set."""
    value = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
    if not isinstance(value, str):
        return
    switch = "INTERPRET" in value and value == value.upper() and " " not in value
    if not switch and not value.startswith(_DEVICE_FILES):
        return
    parent = names.parents.get(node)
    is_set = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)
    if not is_set and not isinstance(parent, ast.Expr):
        message = f"It asks whether kernels run on a device ({value})."
        yield StaticFinding("reads-the-gate", value, node.lineno, message, True)


def _imports(node: ast.AST) -> Iterator[StaticFinding]:
    found: list[str] = []
    if isinstance(node, ast.Import):
        found = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        found = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in found:
        if rule := rule_for(name):
            yield StaticFinding(
                rule[0], f"import {name}", getattr(node, "lineno", 1), f"It imports {name}.", rule[1]
            )


def _insides(names: ResolvedNames, node: ast.Attribute) -> Iterator[StaticFinding]:
    if "accelopt" in node.attr.lower():
        message = f"It looks for the tool that checks it (`.{node.attr}`)."
        yield StaticFinding("reads-the-gate", f".{node.attr}", node.lineno, message, True)
    elif node.attr in _INSIDES:
        yield StaticFinding(
            "reads-the-gate", f".{node.attr}", node.lineno, f"It reaches into `.{node.attr}`.", True
        )
    elif node.attr in _EMULATION and isinstance(node.value, ast.Attribute) and node.value.attr == "block":
        message = f"It reaches into `.block.{node.attr}`."
        yield StaticFinding("reads-the-gate", f".block.{node.attr}", node.lineno, message, True)
    elif node.attr in ("data_ptr", "__array_interface__", "__cuda_array_interface__"):
        yield StaticFinding(
            "reads-address", node.attr, node.lineno, f"It looks at an address (`.{node.attr}`)."
        )


#: Subjects of products that are taken in TF32.
TF32 = frozenset(["TF32 by input_precision", "TF32 by allow_tf32", "TF32 by default", "TF32 by name"])
LOW = ("float16", "bfloat16", "half", "tfloat32", "float8e4", "float8e5", "float8_e4m3", "float8_e5m2",
       "float8_e4m3fn", "float8e4nv", "float8e4b15", "float8_e5m2fnuz", "fp16", "bf16")  # fmt: skip


def _in_single_precision(dot: ast.Call) -> bool:
    given = {k.arg: k.value.value for k in dot.keywords if isinstance(k.value, ast.Constant)}
    return given.get("input_precision") == "ieee" or given.get("allow_tf32") is False


def _of_a_product(names: ResolvedNames, node: ast.Constant) -> bool:
    """Check whether a constant stands at the product itself, and not where a launch or a parameter has it."""
    keyword = names.parents.get(node)
    return isinstance(keyword, ast.keyword) and keyword.arg == "input_precision"


def low_precision(names: ResolvedNames) -> Iterator[StaticFinding]:
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Attribute) and node.attr in LOW:
            yield StaticFinding("low-precision", f".{node.attr}", node.lineno, f"It uses {node.attr}.")
        elif isinstance(node, ast.keyword) and node.arg in ("input_precision", "allow_tf32"):
            value = node.value
            if isinstance(value, ast.Constant) and value.value in ("tf32", True):
                message = f"It asks for TF32 ({node.arg})."
                yield StaticFinding("low-precision", f"TF32 by {node.arg}", value.lineno, message)
        elif isinstance(node, ast.Call) and names.dotted(node.func) == "triton.language.dot":
            if not {"input_precision", "allow_tf32"} & {k.arg for k in node.keywords}:
                message = "tl.dot multiplies float32 in TF32 unless it is told otherwise."
                yield StaticFinding("low-precision", "TF32 by default", node.lineno, message)
            elif _in_single_precision(node):
                yield StaticFinding(
                    "full-precision", "tl.dot", node.lineno, "tl.dot multiplies float32 as it is."
                )
        elif (
            isinstance(node, ast.Constant)
            and node.value in ("tf32", "ieee")
            and not _of_a_product(names, node)
        ):
            low = node.value == "tf32"
            code, subject = ("low-precision", "TF32 by name") if low else ("full-precision", "by name")
            yield StaticFinding(code, subject, node.lineno, f"It names the precision {node.value}.")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in LOW:
            yield StaticFinding("low-precision", node.value, node.lineno, f"It names {node.value}.")
