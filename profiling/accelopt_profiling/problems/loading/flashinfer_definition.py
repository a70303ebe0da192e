"""Parse and check the JSON of FlashInfer-Bench definitions and workloads."""

from __future__ import annotations

import ast
import json
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.problems.problem import ProblemError

#: dtypes of the schema that torch has; float4_e2m1 is packed and has no torch dtype of its own.
DTYPES = frozenset(
    [
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "int64",
        "int32",
        "int16",
        "int8",
        "bool",
    ]
)


@dataclass(frozen=True)
class TensorSpec:
    """An input or output. ``shape`` holds axis names; None means a scalar."""

    name: str
    shape: list[str] | None
    dtype: str


@dataclass(frozen=True)
class Definition:
    """An operator's definition. ``constants`` are the axes with a fixed value; ``variables`` those a workload gives."""

    name: str
    constants: dict[str, int]
    variables: list[str]
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    reference: str


@dataclass(frozen=True)
class Workload:
    """A case: ``axes`` gives every variable axis a size; ``inputs`` says per input "random", or the scalar's value."""

    uuid: str
    axes: dict[str, int]
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)


def parse_definition(text: str, file: str) -> Definition:
    """Parse a definition. Raises ProblemError: it names the part that is wrong."""
    data = _json(text, file)

    def fail(message: str) -> ProblemError:
        return ProblemError("problem-invalid", f"The definition {file}: {message}.", file)

    axes = data.get("axes")
    if not isinstance(axes, dict):
        raise fail('"axes" must be an object')
    constants: dict[str, int] = {}
    variables: list[str] = []
    for name, axis in axes.items():
        kind = axis.get("type") if isinstance(axis, dict) else None
        if kind == "const" and isinstance(axis.get("value"), int) and axis["value"] >= 0:
            constants[name] = axis["value"]
        elif kind == "var":
            variables.append(name)
        else:
            raise fail(
                f'the axis "{name}" is neither {{"type": "var"}} nor {{"type": "const", "value": ...}}'
            )
    specs: dict[str, list[TensorSpec]] = {}
    for group in ("inputs", "outputs"):
        entries = data.get(group)
        if not isinstance(entries, dict) or not entries:
            raise fail(f'"{group}" must be an object with at least one entry')
        specs[group] = [_tensor(name, entry, set(axes), fail) for name, entry in entries.items()]
    reference = data.get("reference")
    if not isinstance(reference, str):
        raise fail('"reference" must be Python source')
    try:
        functions = {n.name for n in ast.parse(reference).body if isinstance(n, ast.FunctionDef)}
    except (SyntaxError, ValueError) as error:
        raise fail(f'"reference" does not parse: {error}') from None
    if "run" not in functions:
        raise fail('"reference" has no function `run`')
    return Definition(
        str(data.get("name")), constants, variables, specs["inputs"], specs["outputs"], reference
    )


def _tensor(name: str, entry: Any, axes: set[str], fail: Any) -> TensorSpec:
    shape = entry.get("shape") if isinstance(entry, dict) else 0
    if shape is not None and not (isinstance(shape, list) and all(isinstance(a, str) for a in shape)):
        raise fail(f'"{name}" needs "shape": null or a list of axis names')
    if missing := [a for a in shape or [] if a not in axes]:
        raise fail(f'"{name}" uses the unknown axis "{missing[0]}"')
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise fail(f'"{name}" has the dtype {dtype!r}, which cannot be drawn here')
    return TensorSpec(name, shape, dtype)


def parse_workloads(
    text: str, definition: Definition, file: str, stored_files: Container[str] = ()
) -> tuple[list[Workload], list[str]]:
    """Return the workloads of a JSON-lines file that can be drawn here, and why others cannot.

    A line is a workload or a trace that holds one. ``stored_files`` are the safetensors files that came with the job;
    workloads that need others are named in the second list.

    Raises:
        ProblemError: a line is no workload.
    """
    workloads: list[Workload] = []
    refused: list[str] = []
    for number, line in enumerate(
        text.split("\n"), 1
    ):  # JSON's texts may hold every other separator of lines
        if not line.strip():
            continue
        trace = _json(line, file, number)
        data = trace.get("workload") or trace
        if not isinstance(data, dict):
            raise ProblemError("problem-invalid", f"{file}:{number} is no workload.", file, number)
        axes, inputs = data.get("axes", {}), data.get("inputs", {})
        sizes_ok = isinstance(axes, dict) and all(type(v) is int and v >= 0 for v in axes.values())
        if (
            not sizes_ok
            or not isinstance(inputs, dict)
            or not all(isinstance(v, dict) for v in inputs.values())
        ):
            raise ProblemError("problem-invalid", f"{file}:{number} is no workload.", file, number)
        missing = [a for a in definition.variables if a not in axes]
        if missing:
            message = f"{file}:{number} gives no size for the axis {missing[0]}."
            raise ProblemError("problem-invalid", message, file, number)
        stored = [
            name
            for name, spec in inputs.items()
            if spec.get("type") == "safetensors" and spec.get("path") not in stored_files
        ]
        uuid = str(data.get("uuid", number))
        if stored:
            refused.append(
                f"the workload {uuid} takes {', '.join(stored)} from a safetensors file that is not here, or too large"
            )
        else:
            workloads.append(Workload(uuid, axes, inputs))
    return workloads, refused


def _json(text: str, file: str, line: int = 1) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProblemError("problem-invalid", f"{file} is not valid JSON: {error}.", file, line) from None
    if not isinstance(data, dict):
        raise ProblemError("problem-invalid", f"{file}:{line} is not a JSON object.", file, line)
    return data
