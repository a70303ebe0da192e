"""Repair an inferred call by the error that a run with it raised: a table of kinds of errors and what each asks for."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from accelopt_profiling.failure_site import FailureSite, NoValueError, failure_sites
from accelopt_profiling.problems.inference.arguments import InferredArgument
from accelopt_profiling.problems.inference.conditions import ConditionSolver, shape_place
from accelopt_profiling.problems.inference.subjects import CallSubjects

_DTYPES = {
    "Long": "int64", "Int": "int32", "Float": "float32", "float": "float32", "Half": "float16", "c10::Half": "float16",
    "BFloat16": "bfloat16", "c10::BFloat16": "bfloat16", "Double": "float64", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
}  # fmt: skip


def repair(error: BaseException, subjects: CallSubjects) -> str | None:
    """Change the call as ``error`` asks for.

    Return what was changed in words, None where nothing is known to help.
    """
    text = f"{type(error).__name__}: {error}"
    sites = failure_sites(error)
    for site in sites:
        if change := _condition(site, subjects):
            return change
    for pattern, mend in _TABLE:
        matched = re.search(pattern, text)
        if matched is None:
            continue
        if not sites and mend in _OF_THE_MESSAGE:
            return mend(matched, None, subjects)
        for site in sites:
            if change := mend(matched, site, subjects):
                return change
    return None


def _condition(site: FailureSite, subjects: CallSubjects) -> str | None:
    """Meet the condition of an ``assert``, of a function that asserts, or of a ``raise`` below conditions."""
    solver = ConditionSolver(site, subjects)
    if isinstance(site.statement, ast.Assert):
        return solver.make(site.statement.test, True)
    called = site.statement.value if isinstance(site.statement, ast.Expr) else None
    if isinstance(called, ast.Call) and called.args and "assert" in ast.unparse(called.func).lower():
        return solver.make(called.args[0], True)
    if not isinstance(site.statement, ast.Raise):
        return None
    inner: ast.stmt = site.statement
    for parent in site.parents:
        if isinstance(parent, ast.If):
            if change := solver.make(parent.test, inner not in parent.body):
                return change
        elif isinstance(parent, ast.FunctionDef):
            return None
        inner = parent
    return None


def _unpack(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    count = int(matched[1])
    if not isinstance(site.statement, ast.Assign):
        return None
    value = site.statement.value
    present = matched[2] if matched[2] else None
    try:
        length = int(present) if present else len(site.value(value))
    except (NoValueError, TypeError):
        return None
    for _, argument in _arguments_in(site, subjects):
        if change := subjects.set_rank(
            argument, len(argument.dims) + count - length, f"rank from line {site.statement.lineno}"
        ):
            return change
    return None


def _index(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    why = f"rank from line {site.statement.lineno}"
    for node in site.expressions():
        place = shape_place(node)
        try:
            if place is not None:
                argument, index = subjects.argument_of(site.value(place[0])), site.value(place[1])
                if argument and type(index) is int and not -len(argument.dims) <= index < len(argument.dims):
                    return subjects.set_rank(argument, index + 1 if index >= 0 else -index, why)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
                argument = subjects.argument_of(site.value(node.value))
                count = sum(
                    not (isinstance(e, ast.Constant) and e.value in (None, ...)) for e in node.slice.elts
                )
                if argument and count > len(argument.dims):
                    return subjects.set_rank(argument, count, why)
        except NoValueError:
            continue
    if matched[0].endswith(("out of range", "got")):
        for _, argument in _arguments_in(site, subjects):
            if not argument.firm:
                return subjects.set_rank(argument, len(argument.dims) + 1, why)
    return None


def _attribute(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    for node in site.expressions():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr == matched[2]:
            value = site.frame.f_locals.get(node.value.id)
            why = f"needed in line {site.statement.lineno}"
            change = None if subjects.is_tensor(value) else subjects.make_tensor(node.value.id, why)
            if change:
                return change
    return None


def _missing(matched: re.Match[str], site: FailureSite | None, subjects: CallSubjects) -> str | None:
    changes = [subjects.make_value(name, "required") for name in re.findall(r"'(\w+)'", matched[1])]
    return "; ".join(filter(None, changes)) or None


def _decided(matched: re.Match[str], site: FailureSite | None, subjects: CallSubjects) -> str | None:
    """Leave out an argument that an autotuner or a heuristic gives."""
    changes = [subjects.leave_out(name.strip(), decided=True) for name in matched[1].split(",")]
    return "; ".join(filter(None, changes)) or None


def _number(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    """Give a value where a tensor stands in the place of a number, a flag or a dtype."""
    flag = "ambiguous" in matched[0]
    for name, argument in _arguments_in(site, subjects):
        if argument.kind == "tensor" and not argument.firm and _plain_use(site, name):
            value = "False" if flag else "torch.bfloat16" if "dtype" in matched[0] else None
            if change := subjects.make_value(
                argument.name, f"no tensor in line {site.statement.lineno}", value
            ):
                return change
    return None


def _nothing(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    """Give a number or a tensor where None stands in its place."""
    items = "subscriptable" in matched[0] or "iterable" in matched[0] or "len()" in matched[0]
    for node in site.expressions():
        for name in _absent(site, node):
            why = f"needed in line {site.statement.lineno}"
            give = subjects.make_tensor if items or "Tensor" in matched[0] else subjects.make_value
            change = give(name, why)
            if change and not change.endswith("is None"):
                return change
            if change := subjects.make_value(name, why, "1"):
                return change
    return None


def _absent(site: FailureSite, node: ast.expr) -> list[str]:
    """Return the name of a variable, or of an object's attribute, that is None, and of what was assigned to it; none
    for anything else."""
    try:
        if not isinstance(node, (ast.Name, ast.Attribute)) or site.value(node) is not None:
            return []
    except NoValueError:
        return []
    if isinstance(node, ast.Attribute):
        return [node.attr]
    assigned = [
        s.value
        for s in (ast.walk(site.function) if site.function is not None else ())
        if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in s.targets)
    ]
    sources = [
        v.id if isinstance(v, ast.Name) else v.attr
        for v in assigned
        if isinstance(v, (ast.Name, ast.Attribute))
    ]
    return [node.id, *sources]


def _tensor_needed(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    for node in site.expressions():
        if not isinstance(node, ast.Name):
            continue
        argument = subjects.named(node.id)
        missing = node.id in site.frame.f_locals and site.frame.f_locals[node.id] is None
        needs_tensor = missing or (argument is not None and argument.kind == "value")
        why = f"needed in line {site.statement.lineno}"
        if needs_tensor and (change := subjects.make_tensor(node.id, why)):
            return change
    return None


def _left_out(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    """Give a tensor whose absence, which the statement asks for, is what it cannot do with."""
    for node in site.expressions():
        test = node.test if isinstance(node, ast.IfExp) else None
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and "None" in ast.unparse(test):
            why = f"needed in line {site.statement.lineno}"
            if site.frame.f_locals.get(test.left.id, 0) is None and (
                change := subjects.make_tensor(test.left.id, why)
            ):
                return change
    return None


def _sizes(matched: re.Match[str], site: FailureSite | None, subjects: CallSubjects) -> str | None:
    return subjects.resize(
        int(matched[1]), int(matched[2]), "sizes that an operation wants equal"
    ) or subjects.resize(int(matched[2]), int(matched[1]), "sizes that an operation wants equal")


def _stated_shape(matched: re.Match[str], site: FailureSite | None, subjects: CallSubjects) -> str | None:
    """Give a tensor the shape that a check of the code says it expected: one that the message names, or the only one of
    the shape that it got."""
    shape, present = ([int(n) for n in re.findall(r"\d+", part)] for part in matched.groups())
    alike = [t for t in subjects.call.tensors if list(subjects.call.shape(t)) == present]
    there = site.frame.f_locals if site is not None else {}
    words = set(re.findall(r"\w+", matched.string))
    tensors = [subjects.argument_of(value) for name, value in there.items() if name in words]
    tensors += [t for t in alike if t.name in words]
    chosen = [t for t in tensors if t is not None and any(t is a for a in alike)] or (
        alike if len(alike) == 1 else []
    )
    return (
        subjects.set_dims(chosen[0], shape, "the shape that a check expects", plain=True) if chosen else None
    )


def _view(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    try:
        shape = [int(n) for n in matched[1].split(",")]
    except ValueError:
        return None
    why = f"shape from line {site.statement.lineno}"
    for _, argument in _arguments_in(site, subjects):
        own = subjects.call.shape(argument)
        if math.prod(own) != int(matched[2]) or not own:
            continue
        if -1 not in shape and len(shape) == len(own):
            return subjects.set_dims(argument, shape, why)
        product = math.prod(n for n in shape if n > 0)
        if -1 in shape:
            last = product // math.gcd(product, math.prod(own[:-1]))
            return subjects.set_dims(argument, [*own[:-1], max(last, 1)], why)
        lead = math.prod(own[:-1])
        if product % lead == 0:
            return subjects.set_dims(argument, [*own[:-1], product // lead], why)
        return subjects.set_dims(argument, shape, why)
    return None


def _layer_rank(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    """Give a tensor the dimensions that a layer of torch takes."""
    for _, argument in _arguments_in(site, subjects):
        if change := subjects.set_rank(argument, int(matched[1]), f"rank from line {site.statement.lineno}"):
            return change
    return None


def _channels(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    """Give a tensor as many channels as a layer of torch was made for."""
    for _, argument in _arguments_in(site, subjects):
        if len(argument.dims) > 2 and argument.dims[1] != matched[1]:
            argument.dims[1], argument.reason = matched[1], f"channels from line {site.statement.lineno}"
            return f"{argument.name} has {matched[1]} channels"
    return None


def _split(matched: re.Match[str], site: FailureSite | None, subjects: CallSubjects) -> str | None:
    total = sum(int(n) for n in re.findall(r"\d+", matched[2]))
    return subjects.resize(int(matched[1]), total, "the parts that it is split into")


def _wanted_dtype(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    expected, present = _DTYPES.get(matched[1]), _DTYPES.get(matched[2])
    for goal, other in ((expected, present), (present, expected)):
        for _, argument in _arguments_in(site, subjects):
            if goal and argument.dtype == other:
                return subjects.set_dtype(argument, goal, f"dtype from line {site.statement.lineno}")
    return None


def _dot_dtype(matched: re.Match[str], site: FailureSite | None, subjects: CallSubjects) -> str | None:
    """Give the tensors of one type that of a product's other operand, which the kernel casts itself."""
    first, second = _DTYPES.get(matched[1]), _DTYPES.get(matched[2])
    for goal, present in ((first, second), (second, first)):
        changes = [
            subjects.set_dtype(argument, goal, "the type of a product's other operand")
            for argument in subjects.call.tensors
            if goal and argument.dtype == present
        ]
        if any(changes):
            return "; ".join(filter(None, changes))
    return None


def _index_dtype(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    inner = [n.slice for n in site.expressions() if isinstance(n, ast.Subscript)]
    inner += [a for n in site.expressions() if isinstance(n, ast.Call) for a in n.args]
    for node in inner:
        try:
            argument = subjects.argument_of(site.value(node))
        except NoValueError:
            continue
        if argument and not argument.dtype.startswith("int"):
            return subjects.set_dtype(argument, "int64", f"an index in line {site.statement.lineno}")
    return None


def _unsupported_dtype(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    present = _DTYPES.get(matched[1], "")
    changes = [
        subjects.set_dtype(argument, "float32", f"{present} is not supported in line {site.statement.lineno}")
        for _, argument in _arguments_in(site, subjects)
        if argument.dtype == present and present != "float32"
    ]
    return "; ".join(filter(None, changes)) or None


def _key(matched: re.Match[str], site: FailureSite, subjects: CallSubjects) -> str | None:
    for node in site.expressions():
        if not isinstance(node, ast.Subscript):
            continue
        try:
            owner, key = site.value(node.value), site.value(node.slice)
        except NoValueError:
            continue
        if not isinstance(owner, dict) or key in owner:
            continue
        names = [n.id for n in ast.walk(node.slice) if isinstance(n, ast.Name)]
        name = next((n for n in names if subjects.named(n)), None)
        keys = [k for k in owner if isinstance(k, (str, int)) or subjects.is_dtype(k)]
        if name and keys:
            return subjects.make_value(name, f"a key in line {site.statement.lineno}", repr(keys[0]))
    return None


def _arguments_in(site: FailureSite, subjects: CallSubjects) -> Iterator[tuple[str, InferredArgument]]:
    """Yield the tensor arguments that a statement names, each with the name that it has there."""
    for node in site.expressions():
        argument = None
        if isinstance(node, ast.Name):
            argument = subjects.argument_of(site.frame.f_locals.get(node.id))
        elif isinstance(node, ast.Attribute) and node.attr != "shape":  # of an object that holds arguments
            with suppress(NoValueError):
                argument = subjects.argument_of(site.value(node))
        if argument is not None:
            yield ast.unparse(node), argument


def _plain_use(site: FailureSite, name: str) -> bool:
    """Tell that the statement uses ``name`` itself, not only attributes of it."""
    owners = {
        n.value.id
        for n in site.expressions()
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
    }
    return name not in owners


_Mend = Callable[[re.Match[str], Any, CallSubjects], str | None]
_TABLE: list[tuple[str, _Mend]] = [
    (r"values to unpack \(expected (?:at least )?(\d+)(?:, got (\d+))?\)", _unpack),
    (r"IndexError: (?:Dimension out of range|tuple index out of range|too many indices|Dimension specified)", _index),
    (r"AttributeError: '(\w+)' object has no attribute '(\w+)'", _attribute),
    (r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)", _missing),
    (r"multiple values for (?:keyword )?argument '(\w+)'", _decided),
    (r"Conflicting meta-parameters: ([\w, ]+)", _decided),
    (r"ambiguous|cannot be interpreted as an integer|must be tuple of ints|only integer tensors|only one element"
     r"|must be real number, not Tensor|must be (?:torch\.)?dtype, not Tensor|must be int, not Tensor|not Tensor\b"
     r"|only tensors with one element|can only convert an array|Cannot interpret", _number),
    (r"must be Tensor, not \w+|expected Tensor as element|expected a Tensor|Expected Tensor", _tensor_needed),
    (r"Value after \* must be an iterable", _left_out),
    (r"NoneType.*|not 'NoneType'|not supported between", _nothing),
    (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _sizes),
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _sizes),
    (r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)", _sizes),
    (r"[Ee]xpected size (\d+) but got size (\d+)", _sizes),
    (r"incompatible dimensions at index \d+: (\d+) and (\d+)", _sizes),
    (r"[Ee]xpected:?(?: shape:?)? [\[(](\d+(?:, ?\d+)*,?)[\])],? "
     r"(?:but )?got:?(?: shape:?)? [\[(](\d+(?:, ?\d+)*,?)[\])]", _stated_shape),
    (r"shape '\[([^\]]*)\]' is invalid for input of size (\d+)", _view),
    (r"Expected \dD \(unbatched\) or (\d)D \(batched\) input", _layer_rank),
    (r"[Ee]xpected (?:\dD or )?(\d)D (?:input \(got|\(batch mode\) tensor)", _layer_rank),
    (r"expected input\[[\d, ]+\] to have (\d+) channels", _channels),
    (r"running_mean should contain \d+ elements not (\d+)", _channels),
    (r"sum exactly to (\d+).*split_sizes=\[([^\]]*)\]", _split),
    (r"expected scalar type (\w+) but found (\w+)", _wanted_dtype),
    (r"operands must be same dtype. Got (\w+) and (\w+)", _dot_dtype),
    (r"same dtype, but got:? (\S+) (?:!=|and) (\S+)", _wanted_dtype),
    (r"used as indices must be|index tensor|dtype int64 for index|[Ee]xpected.*(?:Long|int64|integer)", _index_dtype),
    (r"not implemented for '(\w+)'", _unsupported_dtype),
    (r"KeyError", _key),
]  # fmt: skip

#: Those that need no statement of the user's files: a kernel that is launched itself has none.
_OF_THE_MESSAGE = (_decided, _dot_dtype, _missing, _sizes, _stated_shape)
