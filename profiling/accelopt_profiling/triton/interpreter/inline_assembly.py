"""Inline assembly that is a straight sequence of PTX instructions on floats (ISA 8.7), each maybe under a predicate."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelopt_profiling.triton.interpreter.libdevice import approximate_tanh

Array = np.ndarray[Any, Any]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(r"(?:@(!?)([\w%$]+)\s+)?([a-z0-9]+)((?:\.[a-z0-9_]+)*)(?:\s+(.*))?")
_LITERAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?", re.IGNORECASE)
_BITS = re.compile(r"0f([0-9a-f]{8})|0d([0-9a-f]{16})", re.IGNORECASE)
#: Instructions on floats that give one value per element; approximations but that of the tangent, which is coarse, are
#: computed exactly.
_FLOATS: dict[str, Callable[..., Any]] = {
    "tanh": approximate_tanh, "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
    "abs": np.abs,
    "neg": np.negative, "rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "max": np.fmax, "min": np.fmin,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "fma": lambda x, y, z: x * y + z,
    "mov": lambda x: x, "selp": lambda x, y, p: np.where(p, x, y),
}  # fmt: skip
_OPERANDS = {"max": 2, "min": 2, "add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "selp": 3}
#: Comparisons that are false where an operand is no number.
_COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "ne": lambda x, y: (x < y) | (x > y),
}  # fmt: skip
_TYPES = ("f16", "bf16", "f32", "f64")
#: Instructions that order or time programs: here programs run one after another, at no time.
_ORDER = ("griddepcontrol", "membar", "fence", "bar", "nanosleep")
_ZERO_REGISTERS = ("%globaltimer", "%smid", "%clock", "%clock64", "%nsmid", "%laneid", "%warpid")


class _OtherAssemblyError(Exception):
    """An instruction, or a way to write one, that is not computed here."""


@dataclass
class AssemblyRun:
    """``registers`` hold an array each, the operands as ``$1`` and so on. ``$0`` is the result."""

    registers: dict[str, Array]
    instructions: int = field(default=0)

    @property
    def result(self) -> Array:
        return self.registers.get("$0", np.zeros(1, np.int64))

    def execute(self, statement: str) -> None:
        parts = _STATEMENT.fullmatch(statement)
        if parts is None:
            raise _OtherAssemblyError
        inverted, predicate, name, dotted, rest = parts.groups()
        suffixes, names = dotted.split(".")[1:], [n.strip() for n in (rest or "").split(",")]
        if name in _ORDER and predicate is None:
            return
        if name == "mov" and names[1:] and names[1] in _ZERO_REGISTERS:
            self._write(names[0], np.zeros(1, np.int64), None)
            return
        under = None
        if predicate is not None:
            under = self._read(predicate, "pred") != bool(inverted)
        kind = suffixes[-1] if suffixes else ""
        if kind not in _TYPES:
            raise _OtherAssemblyError
        compare = _COMPARE.get(suffixes[0]) if name == "setp" and len(suffixes) == 2 else None
        compute = compare or _FLOATS.get(name)
        count = 2 if compare else _OPERANDS.get(name, 1)
        if compute is None or len(names) != 1 + count:
            raise _OtherAssemblyError
        kinds = [kind] * count if name != "selp" else [kind, kind, "pred"]
        values = [self._read(n, k) for n, k in zip(names[1:], kinds, strict=True)]
        with np.errstate(all="ignore"):  # also lanes are computed that the predicate leaves out
            self._write(names[0], np.asarray(compute(*values)), under)
        self.instructions += 1

    def _read(self, name: str, kind: str) -> Any:
        register = self.registers.get(name)
        if register is not None:
            if register.dtype.kind != ("b" if kind == "pred" else "f"):
                raise _OtherAssemblyError
            return register
        bits = _BITS.fullmatch(name)
        if kind == "pred" or (bits is None and not _LITERAL.fullmatch(name)):
            raise _OtherAssemblyError
        if bits is not None:
            form, digits = (">f", bits[1]) if bits[1] else (">d", bits[2])
            return np.float64(struct.unpack(form, bytes.fromhex(digits))[0]).astype(_numpy(kind))
        return _numpy(kind)(float(name))

    def _write(self, name: str, value: Array, under: Any) -> None:
        if under is not None:
            value = np.where(under, value, self.registers.get(name, np.zeros((), value.dtype)))
        self.registers[name] = value


def _numpy(kind: str) -> Any:
    return np.float64 if kind == "f64" else np.float32


def run_assembly(text: str, operands: Sequence[Array]) -> AssemblyRun | None:
    """Return what the assembly ``text`` computes of ``operands``, which are floats as floats; None where it holds
    something else: a branch, memory, bits, a register that nothing wrote."""
    plain = " ".join(re.sub(r"[{}]", " ", _COMMENT.sub(" ", text)).split())
    run = AssemblyRun({f"${n}": np.asarray(value) for n, value in enumerate(operands, 1)})
    try:
        for statement in filter(None, map(str.strip, plain.split(";"))):
            if not statement.startswith(".reg "):
                run.execute(statement)
    except _OtherAssemblyError:
        return None
    return run
