"""Load a FlashInfer-Bench definition with workloads: torch tensors as inputs, a reference in Python source.

Random inputs follow FlashInfer-Bench: normal for float32, float16 and bfloat16; normal, cut to -2..2, for float8; 0 or
1 for bool; -128..127 for int8 and -1024..1023 for the other integers. Other tensors come from safetensors files, whose
text a job carries in base64: 8 bytes with the length of a JSON header, little-endian; the header, which gives each
tensor's dtype, shape and place by its name; the tensors' bytes, row by row
(https://github.com/huggingface/safetensors).
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.problems.call import listed, seed_everything, to_device
from accelopt_profiling.problems.discovery.entry import accepts, check_entry, find_entry
from accelopt_profiling.problems.problem import Call, OutputSpec, Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext

#: dtypes of the schema that torch has; float4_e2m1 is packed and has no torch dtype of its own.
DTYPES = frozenset(
    {
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
    }
)


@dataclass(frozen=True)
class TensorSpec:
    """An input or output. ``shape`` holds axis names; None means a scalar."""

    name: str
    shape: list[str] | None
    dtype: str


@dataclass(frozen=True)
class Definition:
    """An operator's definition.

    ``constants`` are the axes with a fixed value; ``variables`` those a workload gives.
    """

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
        str(data.get("name")),
        constants,
        variables=variables,
        inputs=specs["inputs"],
        outputs=specs["outputs"],
        reference=reference,
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


def load_flashinfer_problem(context: StepContext, ref: ProblemRef) -> Problem:
    """Load the problem of a definition's JSON file and its workloads, both files of the job. The first workload is the
    main case; a case picks another one by number.

    Raises:
        ProblemError: one of them is missing or cannot be read, or no workload can be drawn.
    """
    import torch

    files = context.source.files
    file, workloads_file = ref.path or "", str(ref.options.get("workloads", ""))
    for needed in (file, workloads_file):
        if needed not in files:
            raise ProblemError(
                "problem-missing", f"The job lacks the file {needed!r} of the definition.", file
            )
    definition = parse_definition(files[file], file)
    stored = ref.options.get("stored", {})
    workloads, refused = parse_workloads(files[workloads_file], definition, workloads_file, stored)
    if not workloads:
        why = f": {refused[0]}" if refused else "; it is empty"
        raise ProblemError(
            "problem-invalid", f"No workload of {workloads_file} can be drawn here{why}.", workloads_file
        )
    namespace: dict[str, Any] = {}

    def inputs(seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        workload = workloads[int((shape or {}).get("workload", 0))]
        values = [drawn(spec, workload) for spec in definition.inputs]
        return [to_device(v) for v in values] if torch.cuda.is_available() else values

    def drawn(spec: TensorSpec, workload: Workload) -> Any:
        """Return an input as the workload says: from a safetensors file, a number, or drawn."""
        source, sizes = workload.inputs.get(spec.name, {}), {**definition.constants, **workload.axes}
        shape = [sizes[a] for a in spec.shape or []]
        if source.get("type") == "scalar":
            return source.get("value")
        if source.get("type") != "safetensors":
            value = _random(torch, tuple(shape), spec.dtype)
            return value.item() if spec.shape is None else value
        path = str(source.get("path"))
        try:
            tensor = stored_tensor(files[stored[path]], str(source.get("tensor_key")))
        except SafetensorsError as error:
            raise ProblemError("problem-invalid", f"In {path} {error}.", file) from error
        if list(tensor.shape) != shape or tensor.dtype != getattr(torch, spec.dtype):
            message = (
                f"In {path} {spec.name} is {tensor.dtype} {list(tensor.shape)}, not {spec.dtype} {shape}."
            )
            raise ProblemError("problem-invalid", message, file)
        return tensor

    def reference(inputs: list[Any]) -> list[Any] | None:
        if not namespace:
            namespace["__name__"] = "reference"
            exec(compile(definition.reference, f"{file}:reference", "exec"), namespace)  # noqa: S102  (user code)
        result = namespace["run"](*inputs)
        if result is None:
            raise ProblemError("problem-empty", "`run` of the definition's reference returned nothing.", file)
        if not isinstance(result, dict):
            return listed(result)
        names = [spec.name for spec in definition.outputs]
        if missing := [n for n in names if n not in result]:
            raise ProblemError("problem-invalid", f"The reference returned no output {missing[0]!r}.", file)
        return [result[n] for n in names]

    def call(inputs: list[Any]) -> tuple[Call, list[Any]]:
        """The entry point returns the outputs, or takes them after the inputs and fills them."""
        name, filled = _entry_point(context.source, ref.entry, definition, file)
        if not filled:
            return Call(name), inputs
        sizes = dict(definition.constants)
        for spec, value in zip(definition.inputs, inputs, strict=True):
            if spec.shape is not None:
                sizes.update(zip(spec.shape, (int(n) for n in value.shape), strict=True))
        outputs = [
            OutputSpec([sizes[a] for a in spec.shape or []], spec.dtype) for spec in definition.outputs
        ]
        return Call(name, "destination", outputs), inputs

    shapes = [{"workload": n} for n in range(1, len(workloads))]
    return Problem(inputs, call, reference, shapes=shapes, file=file)


def _entry_point(source: JobFiles, entry: str | None, definition: Definition, file: str) -> tuple[str, bool]:
    """Return the function to call, and whether it takes the outputs after the inputs."""
    text = source.files[source.kernel]
    functions = {n.name: n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    count = len(definition.inputs)
    total = count + len(definition.outputs)
    name = entry or ("run" if "run" in functions else None)
    if name is None:
        try:
            return find_entry(text, count, file), False
        except ProblemError:
            return find_entry(text, total, file), True
    if entry:
        check_entry(text, name, count=None, kernel_file=source.kernel, file=file)
    function = functions.get(name)
    return name, function is not None and not accepts(function, count) and accepts(function, total)


def _random(torch: Any, shape: tuple[int, ...], dtype: str) -> Any:
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.randint(0, 2, shape, dtype=torch.bool)
    if dtype.startswith("float8"):
        return torch.randn(shape).clamp(-2, 2).to(kind)
    if kind.is_floating_point:
        return torch.randn(shape, dtype=torch.float32).to(kind)
    low, high = (-128, 128) if dtype == "int8" else (-1024, 1024)
    return torch.randint(low, high, shape, dtype=kind)


_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip


class SafetensorsError(Exception):
    """The file is none, or does not hold the tensor."""


def stored_tensor(text: str, key: str) -> Any:
    """Return the torch tensor ``key`` of a file in base64.

    Raises:
        SafetensorsError: there is no such tensor, or the file is broken.
    """
    import torch

    try:
        data = base64.b64decode(text, validate=True)
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        entry = header[key]
        dtype = getattr(torch, _DTYPES[entry["dtype"]])
        first, end = entry["data_offsets"]
        held = bytearray(data[start + first : start + end])
        if len(held) != end - first:
            raise ValueError("the file is cut off")
        if not held:
            return torch.empty(entry["shape"], dtype=dtype)
        return torch.frombuffer(held, dtype=torch.uint8).view(dtype).reshape(entry["shape"])
    except (KeyError, ValueError, TypeError, RuntimeError, binascii.Error) as error:
        held_names = ", ".join(list(header)[:5]) if "header" in locals() and isinstance(header, dict) else ""
        which = f"it holds {held_names}" if held_names else f"{type(error).__name__}: {error}"
        raise SafetensorsError(f"the tensor {key!r} cannot be read ({which})") from error
