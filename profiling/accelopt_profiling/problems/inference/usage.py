"""Read from a file's syntax how each function uses its parameters: as tensors of a rank, numbers, flags, strings.

What a function passes on to another function of the file, to an autograd function or to a kernel counts as its own use.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from accelopt_profiling.problems.discovery.kernel_makers import made_function
from accelopt_profiling.problems.inference.conventions import usual_value
from accelopt_profiling.problems.inference.entries import given_before, is_torch_module
from accelopt_profiling.problems.inference.pointers import (
    address_roots,
    byte_pointers,
    integer_pointers,
    integer_scalars,
    packed_pointers,
    pointers,
    single_pointers,
)

_TENSOR_ATTRIBUTES = frozenset((
    "shape", "stride", "size", "dtype", "device", "numel", "contiguous", "dim", "ndim", "is_contiguous", "new_empty",
    "new_zeros", "view", "reshape", "data_ptr", "T", "element_size", "is_cuda", "to", "float", "half", "bfloat16",
    "long", "unsqueeze", "squeeze", "transpose", "permute", "storage_offset", "requires_grad", "int", "sum", "abs",
    "flatten", "amax", "amin", "detach", "clone", "expand", "type_as", "is_floating_point",
))  # fmt: skip
_LIKE = frozenset(("empty_like", "zeros_like", "ones_like", "rand_like", "full_like", "randn_like"))
_WHOLE = frozenset(("cdiv", "next_power_of_2", "range", "prev_power_of_2"))
_PASSED_ON = 6


@dataclass
class ParameterUse:
    """The uses of one parameter. ``dims`` are the names of its dimensions where ``rank`` is known, "" for one without a
    name; ``at_least`` is a lower bound of the rank, ``indices`` the rank that arrays of indices tell; ``named`` holds
    names by position, also from the end.
    ``optional`` is what the code compares with None.
    """

    name: str
    annotation: str = ""
    default: ast.expr | None = None
    rank: int | None = None
    dims: list[str] = field(default_factory=list)
    at_least: int = 0
    indices: int = 0
    named: dict[int, str] = field(default_factory=dict)
    tensor: bool = False
    whole: bool = False
    scalar: bool = False
    integers: bool = False
    packed: str = ""
    byte_type: str = ""
    single: bool = False
    dtype_like: bool = False
    called: bool = False
    indexed_by: bool = False
    choices: list[str] = field(default_factory=list)
    flag: bool = False
    optional: bool = False
    vector: bool = False
    line: int = 0

    def take(self, other: ParameterUse) -> None:
        """Add the uses of the parameter that this one is passed on as."""
        if self.rank is None and other.rank is not None:
            self.rank, self.dims, self.line = other.rank, list(other.dims), other.line
        self.at_least = max(self.at_least, other.at_least)
        self.indices = max(self.indices, other.indices)
        self.named = {**other.named, **self.named}
        for name in (
            "tensor",
            "whole",
            "scalar",
            "integers",
            "packed",
            "single",
            "dtype_like",
            "called",
            "flag",
            "optional",
        ):
            setattr(self, name, getattr(self, name) or getattr(other, name))
        self.choices = self.choices or list(other.choices)
        self.byte_type = self.byte_type or other.byte_type
        if not self.annotation:
            self.annotation = other.annotation


@dataclass
class FunctionUse:
    """A function of the file: its parameters in order, and how it uses them."""

    node: ast.FunctionDef
    parameters: dict[str, ParameterUse]
    keyword_only: list[str]
    kernel: bool = False


def function_uses(
    tree: ast.Module, kernels: set[str], imported: Mapping[str, ast.FunctionDef] | None = None
) -> dict[str, FunctionUse]:
    """Return the uses of the parameters of each function, by its name, methods of classes as ``Class.method``.
    ``imported`` are functions of other files that its kernels call, by the names that they have here.
    """
    imported = imported or {}
    helpers = {**imported, **{node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}}
    functions = {name: _own_uses(node, True, helpers) for name, node in imported.items()}
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, owner = waiting.pop(0)
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(f"{prefix}{node.name}", _own_uses(node, node.name in kernels, helpers))
                waiting.append(("", node))
            elif isinstance(node, ast.ClassDef):
                waiting.append((f"{node.name}.", node))
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                waiting.append((prefix, node))
    for _ in range(_PASSED_ON):
        for function in functions.values():
            _pass_on(function, functions)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and f"{node.name}.forward" in functions and is_torch_module(node):
            functions[node.name] = _module_uses(
                functions.get(f"{node.name}.__init__"), functions[f"{node.name}.forward"]
            )
    for name, maker in list(functions.items()):
        made = made_function(maker.node)
        if made is not None and not maker.kernel:
            known = functions.get(made.name)
            own = known if known is not None and known.node is made else _own_uses(made, False, helpers)
            functions[name] = _maker_uses(maker, own)
    return functions


def _module_uses(construction: FunctionUse | None, forward: FunctionUse) -> FunctionUse:
    """Return the parameters that a module is built with and has no default for, followed by those of its call."""
    built = [] if construction is None else list(construction.parameters.values())[1:]
    required = {  # whatever layers make of them, they are no tensors
        use.name: ParameterUse(
            use.name, use.annotation, whole=not use.annotation and usual_value(use.name) is None
        )
        for use in built
        if use.default is None
    }
    called = dict(list(forward.parameters.items())[1:])
    return FunctionUse(forward.node, {**required, **called}, forward.keyword_only, False)


def _maker_uses(maker: FunctionUse, made: FunctionUse) -> FunctionUse:
    """Return the parameters of a function that makes a kernel: those that it requires, and those of the kernel."""
    required = {name: use for name, use in maker.parameters.items() if use.default is None}
    both = {**required, **made.parameters}
    return FunctionUse(maker.node, both, made.keyword_only, maker.kernel)


def _own_uses(node: ast.FunctionDef, kernel: bool, helpers: Mapping[str, ast.FunctionDef]) -> FunctionUse:
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    parameters: dict[str, ParameterUse] = {}
    given = [
        *zip(positional, [*defaults, *node.args.defaults], strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    for argument, default in given:
        annotation = ast.unparse(argument.annotation) if argument.annotation else ""
        parameters[argument.arg] = ParameterUse(argument.arg, annotation, default)
    use = FunctionUse(node, parameters, [a.arg for a in node.args.kwonlyargs], kernel)
    if kernel:
        loaded, packed, alone = integer_pointers(node), packed_pointers(node, helpers), single_pointers(node)
        types = byte_pointers(node)
        for name in pointers(node) & set(parameters):
            parameters[name].tensor = True
            parameters[name].integers = name in loaded
            parameters[name].packed = packed.get(name, "")
            parameters[name].single = name in alone
            parameters[name].byte_type = types.get(name, "")
        whole = integer_scalars(node)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Compare):
                _read_choices(inner, parameters)
            elif isinstance(inner, (ast.If, ast.IfExp)):
                _read_flags(inner.test, parameters)
        for parameter in parameters.values():
            parameter.whole = not parameter.tensor and parameter.name in whole
            parameter.scalar = not parameter.tensor and "constexpr" not in parameter.annotation
        return use
    either = {id(inner) for n in ast.walk(node) if isinstance(n, ast.IfExp) for inner in ast.walk(n.test)}
    for statement in ast.walk(node):
        if id(statement) not in either or not _compares_rank(statement, parameters):
            _read(statement, parameters)
    return use


def _compares_rank(node: ast.AST, parameters: dict[str, ParameterUse]) -> bool:
    """Tell whether an expression compares a parameter's rank: where both answers go on it states none."""
    return isinstance(node, ast.Compare) and any(
        _rank_of(n, parameters) for n in (node.left, *node.comparators)
    )


def _read(node: ast.AST, parameters: dict[str, ParameterUse]) -> None:
    if isinstance(node, ast.Assign):
        _read_unpacking(node, parameters)
    elif isinstance(node, ast.Attribute) and (use := _parameter(node.value, parameters)):
        use.tensor |= node.attr in _TENSOR_ATTRIBUTES
        use.integers |= node.attr == "long"
    elif isinstance(node, ast.Subscript):
        _read_subscript(node, parameters)
    elif isinstance(node, ast.Call):
        _read_call(node, parameters)
    elif isinstance(node, ast.Compare):
        _read_comparison(node, parameters)
    elif isinstance(node, (ast.If, ast.IfExp, ast.Assert, ast.While)):
        test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        if use := _parameter(test, parameters):
            use.flag = True
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        if use := _parameter(node.right, parameters):
            use.whole = True
    elif (
        isinstance(node, ast.keyword) and node.arg == "dtype" and (use := _parameter(node.value, parameters))
    ):
        use.dtype_like = True


def _read_unpacking(node: ast.Assign, parameters: dict[str, ParameterUse]) -> None:
    """``a, b = x.shape``, ``a, *_, d = x.shape``, ``a, b, c = *x.shape, y.shape[-1]``, ``n = x.shape[0]``."""
    if len(node.targets) != 1:
        return
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        if place := _place(value, parameters):
            _name_dimension(*place, target.id, node.lineno)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        return
    names = [
        n.id.strip("_") and n.id if isinstance(n, ast.Name) else "*" if isinstance(n, ast.Starred) else ""
        for n in target.elts
    ]
    shaped = _shape_of(value, parameters)
    if shaped is not None:
        use = shaped
        if "*" in names:
            use.at_least = max(use.at_least, len(names) - 1)
            star = names.index("*")
            use.named.update(dict(enumerate(names[:star])))
            use.named.update({i - len(names): n for i, n in enumerate(names) if i > star})
        elif use.rank is None:
            use.rank, use.dims, use.line = len(names), names, node.lineno
        return
    if not isinstance(value, ast.Tuple):
        return
    starred = [n for n, part in enumerate(value.elts) if isinstance(part, ast.Starred)]
    if len(starred) == 1 and "*" not in names:
        at, rest = starred[0], len(value.elts) - 1
        length = len(names) - rest
        inner = value.elts[at]
        assert isinstance(inner, ast.Starred)
        shaped = _shape_of(inner.value, parameters)
        if shaped and length > 0 and shaped.rank is None:
            shaped.rank, shaped.dims, shaped.line = length, names[at : at + length], node.lineno
        elif place := _slice_of(inner.value, parameters):
            _name_slice(*place, names[at : at + length], node.lineno)
        names = [*names[:at], "", *names[at + length :]]
    if len(names) == len(value.elts):
        for name, part in zip(names, value.elts, strict=True):
            if name and (place := _place(part, parameters)):
                _name_dimension(*place, name, node.lineno)


def _name_dimension(use: ParameterUse, index: int, name: str, line: int) -> None:
    use.at_least = max(use.at_least, index + 1 if index >= 0 else -index)
    use.named.setdefault(index, name)
    use.line = use.line or line


def _name_slice(use: ParameterUse, start: int, names: list[str], line: int) -> None:
    for offset, name in enumerate(names):
        if name:
            _name_dimension(use, start + offset, name, line)


def _read_subscript(node: ast.Subscript, parameters: dict[str, ParameterUse]) -> None:
    if place := _place(node, parameters):
        use, index = place
        use.at_least = max(use.at_least, index + 1 if index >= 0 else -index)
    elif (owner := _parameter(node.value, parameters)) is not None:
        use = owner
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        if len(items) > 1 and not any(isinstance(i, ast.Constant) and i.value is Ellipsis for i in items):
            plain = [i for i in items if not (isinstance(i, ast.Constant) and i.value is None)]
            use.at_least = max(use.at_least, len(plain))
            use.tensor = True
            if len(plain) > 2 and any(
                map(_is_array_index, items)
            ):  # NKI's arrays of indices name all dimensions
                use.indices = max(use.indices, len(plain))
    if index_use := _parameter(node.slice, parameters):
        index_use.indexed_by = True


def _is_array_index(node: ast.expr) -> bool:
    """Tell that an index is computed from an array with a new axis: ``128 * n + nl.arange(128)[:, None]``."""
    return any(
        isinstance(part, ast.Subscript)
        and isinstance(part.value, ast.Call)
        and any(isinstance(e, ast.Constant) and e.value is None for e in ast.walk(part.slice))
        for part in ast.walk(node)
    )


def _read_call(node: ast.Call, parameters: dict[str, ParameterUse]) -> None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if use := _parameter(node.func, parameters):
        use.called = True
    first = _parameter(node.args[0], parameters) if node.args else None
    if first and name in _LIKE:
        first.tensor = True
    if name == "isinstance" and first and len(node.args) == 2:
        kinds = {ast.unparse(n) for n in ast.walk(node.args[1]) if isinstance(n, (ast.Name, ast.Attribute))}
        first.tensor |= "torch.Tensor" in kinds
        first.flag |= "bool" in kinds
        first.whole |= "int" in kinds
    if name in _WHOLE:
        for argument in node.args:
            if use := _parameter(argument, parameters):
                use.whole = True
    if name in ("finfo", "iinfo") and first:
        first.dtype_like = True
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("stride", "size") and node.args:
        owner, index = _parameter(node.func.value, parameters), _constant(node.args[0])
        if owner and index is not None:
            owner.at_least = max(owner.at_least, index + 1 if index >= 0 else -index)


def _read_comparison(node: ast.Compare, parameters: dict[str, ParameterUse]) -> None:
    if len(node.ops) != 1:
        return
    _read_choices(node, parameters)
    left, right, operator = node.left, node.comparators[0], node.ops[0]
    for one, other in ((left, right), (right, left)):
        if use := _parameter(one, parameters):
            if isinstance(other, ast.Constant) and isinstance(other.value, bool):
                use.flag = True
            elif isinstance(other, ast.Constant) and other.value is None:
                use.optional = True
            elif isinstance(other, ast.Constant) and type(other.value) is int:
                use.whole = True
        rank = _constant(other)
        if (use := _rank_of(one, parameters)) and isinstance(operator, ast.Eq) and rank is not None:
            use.rank = use.rank or rank
            use.dims = use.dims or [""] * rank
            use.line = use.line or node.lineno


def _read_flags(test: ast.expr, parameters: dict[str, ParameterUse]) -> None:
    """Note the constants of a kernel that a condition takes as they are: no float may stand there."""
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        use = _parameter(part.operand if isinstance(part, ast.UnaryOp) else part, parameters)
        if use and "constexpr" in use.annotation:
            use.flag = True


def _read_choices(node: ast.Compare, parameters: dict[str, ParameterUse]) -> None:
    """Note the strings that a parameter is compared with."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.In, ast.NotEq, ast.NotIn)):
        return
    for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if use := _parameter(one, parameters):
            strings = [
                c.value for c in ast.walk(other) if isinstance(c, ast.Constant) and isinstance(c.value, str)
            ]
            use.choices += [s for s in strings if s not in use.choices]


def _parameter(node: ast.AST, parameters: dict[str, ParameterUse]) -> ParameterUse | None:
    return parameters.get(node.id) if isinstance(node, ast.Name) else None


def _constant(node: ast.AST) -> int | None:
    try:
        value = ast.literal_eval(node) if isinstance(node, ast.expr) else None
    except (ValueError, TypeError):
        return None
    return value if type(value) is int else None


def _shape_of(node: ast.AST, parameters: dict[str, ParameterUse]) -> ParameterUse | None:
    """Return the parameter of ``x.shape`` or ``x.size()``."""
    if isinstance(node, ast.Call) and not node.args and isinstance(node.func, ast.Attribute):
        return _parameter(node.func.value, parameters) if node.func.attr in ("size", "stride") else None
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return _parameter(node.value, parameters)
    return None


def _place(node: ast.AST, parameters: dict[str, ParameterUse]) -> tuple[ParameterUse, int] | None:
    """Return the parameter and the dimension of ``x.shape[i]`` or ``x.size(i)``."""
    if isinstance(node, ast.Subscript):
        use, index = _shape_of(node.value, parameters), _constant(node.slice)
        return (use, index) if use and index is not None else None
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
        use, index = _parameter(node.func.value, parameters), _constant(node.args[0])
        return (use, index) if use and index is not None and node.func.attr == "size" else None
    return None


def _slice_of(node: ast.AST, parameters: dict[str, ParameterUse]) -> tuple[ParameterUse, int] | None:
    """Return the parameter and the first dimension of ``x.shape[a:b]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        use = _shape_of(node.value, parameters)
        start = _constant(node.slice.lower) if node.slice.lower else 0
        return (use, start) if use and start is not None else None
    return None


def _rank_of(node: ast.AST, parameters: dict[str, ParameterUse]) -> ParameterUse | None:
    """Return the parameter of ``x.dim()``, ``x.ndim`` or ``len(x.shape)``."""
    if isinstance(node, ast.Attribute) and node.attr == "ndim":
        return _parameter(node.value, parameters)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "dim":
        return _parameter(node.func.value, parameters)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        return _shape_of(node.args[0], parameters)
    return None


def _pass_on(function: FunctionUse, functions: dict[str, FunctionUse]) -> None:
    for call in ast.walk(function.node):
        if not isinstance(call, ast.Call):
            continue
        target = call.func.value if isinstance(call.func, ast.Subscript) else call.func
        name = ""
        if isinstance(target, ast.Name):
            name = target.id
        elif (
            isinstance(target, ast.Attribute)
            and target.attr == "apply"
            and isinstance(target.value, ast.Name)
        ):
            name = f"{target.value.id}.forward"
        called = functions.get(name)
        if called is None or called is function:
            continue
        skip = given_before(called.node) if name.endswith(".forward") else 0
        taken = list(called.parameters)[skip:]
        pairs = [*zip(taken, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]
        for parameter, given in pairs:
            if parameter not in called.parameters:
                continue
            use, own = called.parameters[parameter], _parameter(given, function.parameters)
            if own is not None and own.name:
                own.take(use)
            elif function.kernel and use.tensor:  # a function of the kernel's gets an address
                for name in address_roots(function.node, given) & set(function.parameters):
                    pointer = function.parameters[name]
                    pointer.tensor, pointer.whole, pointer.scalar = True, False, False
                    pointer.integers |= use.integers
                    pointer.byte_type = pointer.byte_type or use.byte_type
                    pointer.packed = pointer.packed or use.packed
