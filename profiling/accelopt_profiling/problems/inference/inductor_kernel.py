"""Read the call of a kernel that ``torch.compile`` wrote: Inductor states types and sizes beside it, in decorator and
body."""

from __future__ import annotations

import ast
import re
from math import prod
from typing import Any

from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall
from accelopt_profiling.problems.inference.pointers import address_roots

_DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u8": "uint8", "i1": "bool", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
}  # fmt: skip
_NUMEL = re.compile(r"([xyz]|r\d*_?)numel")
#: The names that Inductor gives the elements that a program works on, each below the size of its axis.
_INDEX = re.compile(r"([xyz]|r\d*_?)index")
#: A size that a kernel for any sizes gets as an argument, where nothing tells it.
_FREE_SIZE = 64

#: The elements of a block where no configuration gives it.
_BLOCK = 256

#: The least and the greatest value of an expression.
_Range = tuple[int, int]


def inductor_call(kernel: ast.FunctionDef, entry: str) -> InferredCall | None:
    """Return the call of a kernel that Inductor wrote. None for other kernels."""
    stated = _decorator(kernel) or _by_convention(kernel)
    if stated is None:
        return None
    signature, constants, hints = stated
    sizes = _sizes(kernel, [n for n in signature if _NUMEL.fullmatch(n)], hints)
    reach = _AccessRanges(kernel, sizes)
    call = InferredCall(entry)
    for name, kind in signature.items():
        if kind.startswith("*"):
            call.arguments.append(_tensor(name, _DTYPES.get(kind[1:], "float32"), reach, sizes))
        elif name in sizes:
            why = "stated in the kernel" if name in reach.stated else "Inductor's hint of the size"
            call.arguments.append(InferredArgument(name, "value", value=str(sizes[name]), reason=why))
        elif name in constants:
            call.arguments.append(
                InferredArgument(
                    name, "value", value=repr(constants[name]), reason="a constant of the kernel"
                )
            )
        elif kind.startswith("fp"):
            call.arguments.append(InferredArgument(name, "value", value="1.0", reason="a number by its type"))
        elif kind != "constexpr":  # those are blocks, which the configurations give
            call.arguments.append(
                InferredArgument(
                    name, "value", value=str(_FREE_SIZE), reason="a size of which nothing tells more"
                )
            )
    parameters = {a.arg for a in kernel.args.args}
    call.grid = [
        f"cdiv({axis}numel, {axis.upper()}BLOCK)" if f"{axis.upper()}BLOCK" in parameters else f"{axis}numel"
        for axis in "xyz"
        if f"{axis}numel" in sizes
    ] or ["1"]
    return call


def inductor_program(function: ast.FunctionDef, entry: str) -> InferredCall | None:
    """Return the call of ``call(args)``, the function in which Inductor launches a program's kernels: it asserts size
    and strides of each tensor in the list. None for another function."""
    parameters = [a.arg for a in function.args.args]
    targets = [
        n.targets[0].elts
        for n in function.body
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Tuple)
        and len(parameters) == 1
        and ast.unparse(n.value) == parameters[0]
    ]
    layouts = {
        ast.unparse(n.value.args[0]): (_literal(n.value.args[1]), _literal(n.value.args[2]))
        for n in function.body
        if isinstance(n, ast.Expr)
        and isinstance(n.value, ast.Call)
        and ast.unparse(n.value.func) == "assert_size_stride"
        and len(n.value.args) > 2
    }
    if not targets or not layouts:
        return None
    values = [_laid_out(*layouts.get(ast.unparse(name), (None, None))) for name in targets[0]]
    call = InferredCall(entry)
    call.arguments.append(
        InferredArgument(
            parameters[0], "value", value=f"[{', '.join(values)}]", reason="sizes and strides as asserted"
        )
    )
    return call


def _laid_out(size: Any, strides: Any) -> str:
    """Return the expression of a tensor. A number where nothing is asserted, as of sizes."""
    if not isinstance(size, tuple) or not isinstance(strides, tuple):
        return str(_FREE_SIZE)
    elements = 1 + sum((n - 1) * step for n, step in zip(size, strides, strict=True))
    return f'torch.randn({max(elements, 1)}, device="cuda").as_strided({size}, {strides})'


def _decorator(kernel: ast.FunctionDef) -> tuple[dict[str, str], dict[str, Any], Any] | None:
    """Return the types of the arguments, the constants among them and the hints of sizes; None where no decorator
    states any."""
    names = [a.arg for a in kernel.args.args]
    for decorator in kernel.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        keywords = {k.arg: k.value for k in decorator.keywords}
        meta = keywords.get("triton_meta")
        entries = {} if not isinstance(meta, ast.Dict) else {
            k.value: _literal(v) for k, v in zip(meta.keys, meta.values, strict=True) if isinstance(k, ast.Constant)
        }  # fmt: skip
        if isinstance(types := entries.get("signature"), dict):
            constants = entries.get("constants")
            return (
                {str(n): str(kind) for n, kind in _by_name(types, names).items()},
                _by_name(constants, names) if isinstance(constants, dict) else {},
                _literal(keywords["size_hints"]) if "size_hints" in keywords else None,
            )
    return None


def _by_convention(kernel: ast.FunctionDef) -> tuple[dict[str, str], dict[str, Any], Any] | None:
    """Return the same of a kernel whose decorator was taken off, as collections of kernels have them: it has blocks and
    pointers by Inductor's names, and its body assigns the size."""
    parameters = [a.arg for a in kernel.args.args]
    if "XBLOCK" not in parameters or "xnumel" not in _assigned_numbers(kernel):
        return None
    signature = {n: "*fp32" if "ptr" in n else "constexpr" if "BLOCK" in n else "i32" for n in parameters}
    return signature, {n: _BLOCK for n in parameters if "BLOCK" in n}, None


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def _by_name(entries: dict[Any, Any], names: list[str]) -> dict[Any, Any]:
    """Return entries by argument name; older versions number the arguments."""
    return {
        names[k] if isinstance(k, int) and k < len(names) else k[0] if isinstance(k, tuple) else k: v
        for k, v in entries.items()
    }


def _sizes(kernel: ast.FunctionDef, numels: list[str], hints: Any) -> dict[str, int]:
    """Return the sizes of the axes: those that the body assigns, else Inductor's hints."""
    hinted: dict[str, int] = {}
    if isinstance(hints, dict):
        hinted = {f"{axis}numel": n for axis, n in hints.items() if isinstance(n, int)}
    elif isinstance(hints, (list, tuple)):
        hinted = {name: n for name, n in zip(numels, hints, strict=False) if isinstance(n, int)}
    stated = _assigned_numbers(kernel)
    return {name: stated.get(name, hinted.get(name, _FREE_SIZE)) for name in numels}


def _assigned_numbers(kernel: ast.FunctionDef) -> dict[str, int]:
    return {
        node.targets[0].id: node.value.value
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
    }


def _tensor(name: str, dtype: str, reach: _AccessRanges, sizes: dict[str, int]) -> InferredArgument:
    elements = reach.elements.get(name) or prod(sizes.values())
    why = (
        "as many elements as its accesses reach"
        if name in reach.elements
        else "an element for each of the launch"
    )
    argument = InferredArgument(name, "tensor", [str(elements)], dtype, reason=why, firm=True)
    if (below := reach.below.get(name)) is not None:
        argument.kind, argument.reason = "value", f"indices below {below}, which the kernel asserts"
        argument.value = f'torch.randint(0, {below}, ({elements},), device="cuda", dtype=torch.{dtype})'
    return argument


class _AccessRanges:
    """How far a kernel's accesses reach: ``elements`` of each pointer, ``below`` which bound the indices lie that are
    loaded from it, ``stated`` sizes that the body assigns."""

    def __init__(self, kernel: ast.FunctionDef, sizes: dict[str, int]) -> None:
        self.elements: dict[str, int] = {}
        self.below: dict[str, int] = {}
        self.stated = _assigned_numbers(kernel)
        self._kernel, self._sizes = kernel, sizes
        self._ranges: dict[str, _Range] = {name: (n, n) for name, n in sizes.items()}
        self._loaded: dict[str, set[str]] = {}  # of a name, the pointers that its value was loaded from
        self._follow(kernel.body)

    def _follow(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.For):
                self._follow(node.body)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._take_accesses(node.value)
                self._assign(node.targets[0].id, node.value)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                if ast.unparse(node.value.func) == "tl.device_assert":
                    self._bound(node.value.args[0])
                self._take_accesses(node.value)

    def _assign(self, name: str, value: ast.expr) -> None:
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        self._loaded[name] = set().union(*(self._loaded.get(n, set()) for n in names))
        for call in ast.walk(value):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "tl.load" and call.args:
                self._loaded[name] |= address_roots(self._kernel, call.args[0])
        axis = _INDEX.fullmatch(name)
        if axis is not None and (size := self._sizes.get(f"{axis[1]}numel")) is not None:
            self._ranges[name] = (0, size - 1)
        elif (value_range := self._range(value)) is not None:
            self._ranges[name] = value_range

    def _take_accesses(self, value: ast.expr) -> None:
        for call in ast.walk(value):
            if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.BinOp):
                continue
            address = call.args[0]
            if isinstance(address.left, ast.Name) and (reached := self._range(address.right)) is not None:
                pointer = address.left.id
                self.elements[pointer] = max(self.elements.get(pointer, 1), reached[1] + 1)

    def _bound(self, test: ast.expr) -> None:
        """Note what is asserted of an index that was loaded."""
        for node in ast.walk(test):
            if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Lt):
                continue
            bound = self._range(node.comparators[0])
            if isinstance(node.left, ast.Name) and bound is not None:
                self._ranges[node.left.id] = (0, bound[1] - 1)
                for pointer in self._loaded.get(node.left.id, ()):
                    self.below[pointer] = min(self.below.get(pointer, bound[1]), bound[1])

    def _range(self, node: ast.expr) -> _Range | None:
        """Return the range of a whole-number expression; None where nothing tells it."""
        if isinstance(node, ast.Constant):
            return (node.value, node.value) if type(node.value) is int else None
        if isinstance(node, ast.Name):
            return self._ranges.get(node.id)
        if not isinstance(node, ast.BinOp):
            return None
        left, right = self._range(node.left), self._range(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left[0] + right[0], left[1] + right[1]
        if isinstance(node.op, ast.Sub):
            return left[0] - right[1], left[1] - right[0]
        if isinstance(node.op, ast.Mult):
            corners = [a * b for a in left for b in right]
            return min(corners), max(corners)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right[0] == right[1] > 0:
            divided = left[0] // right[0], left[1] // right[0]
            if isinstance(node.op, ast.FloorDiv):
                return divided
            return (0, right[0] - 1) if divided[0] != divided[1] else (left[0] % right[0], left[1] % right[0])
        return None
