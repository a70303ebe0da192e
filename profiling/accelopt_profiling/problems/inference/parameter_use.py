"""What the statements of a function tell of one of its parameters: a tensor of a rank, a number, a flag, a string."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

_TENSOR_ATTRIBUTES = frozenset((
    "shape", "stride", "size", "dtype", "device", "numel", "contiguous", "dim", "ndim", "is_contiguous", "new_empty",
    "new_zeros", "view", "reshape", "data_ptr", "T", "element_size", "is_cuda", "to", "float", "half", "bfloat16",
    "long", "unsqueeze", "squeeze", "transpose", "permute", "storage_offset", "requires_grad", "int", "sum", "abs",
    "flatten", "amax", "amin", "detach", "clone", "expand", "type_as", "is_floating_point",
))  # fmt: skip
_LIKE = frozenset(("empty_like", "zeros_like", "ones_like", "rand_like", "full_like", "randn_like"))
_WHOLE = frozenset(("cdiv", "next_power_of_2", "range", "prev_power_of_2"))


@dataclass
class ParameterUse:
    """The uses of one parameter.

    ``dims`` are the names of its dimensions where ``rank`` is known, "" for one without a name; ``at_least`` is a lower
    bound of the rank, ``indices`` the rank that arrays of indices tell; ``named`` holds names by position, also from
    the end. ``optional`` is what the code compares with None.
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


def compares_rank(node: ast.AST, parameters: dict[str, ParameterUse]) -> bool:
    """Tell whether an expression compares a parameter's rank: where both answers go on it states none."""
    return isinstance(node, ast.Compare) and any(
        _rank_of(n, parameters) for n in (node.left, *node.comparators)
    )


def read_statement(node: ast.AST, parameters: dict[str, ParameterUse]) -> None:
    """Add to ``parameters`` what a statement or an expression tells of them."""
    if isinstance(node, ast.Assign):
        _read_unpacking(node, parameters)
    elif isinstance(node, ast.Attribute) and (use := parameter_of(node.value, parameters)):
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
        if use := parameter_of(test, parameters):
            use.flag = True
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        if use := parameter_of(node.right, parameters):
            use.whole = True
    elif (
        isinstance(node, ast.keyword)
        and node.arg == "dtype"
        and (use := parameter_of(node.value, parameters))
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
    elif (owner := parameter_of(node.value, parameters)) is not None:
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
    if index_use := parameter_of(node.slice, parameters):
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
    if use := parameter_of(node.func, parameters):
        use.called = True
    first = parameter_of(node.args[0], parameters) if node.args else None
    if first and name in _LIKE:
        first.tensor = True
    if name == "isinstance" and first and len(node.args) == 2:
        kinds = {ast.unparse(n) for n in ast.walk(node.args[1]) if isinstance(n, (ast.Name, ast.Attribute))}
        first.tensor |= "torch.Tensor" in kinds
        first.flag |= "bool" in kinds
        first.whole |= "int" in kinds
    if name in _WHOLE:
        for argument in node.args:
            if use := parameter_of(argument, parameters):
                use.whole = True
    if name in ("finfo", "iinfo") and first:
        first.dtype_like = True
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("stride", "size") and node.args:
        owner, index = parameter_of(node.func.value, parameters), _constant(node.args[0])
        if owner and index is not None:
            owner.at_least = max(owner.at_least, index + 1 if index >= 0 else -index)


def _read_comparison(node: ast.Compare, parameters: dict[str, ParameterUse]) -> None:
    if len(node.ops) != 1:
        return
    read_choices(node, parameters)
    left, right, operator = node.left, node.comparators[0], node.ops[0]
    for one, other in ((left, right), (right, left)):
        if use := parameter_of(one, parameters):
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


def read_flags(test: ast.expr, parameters: dict[str, ParameterUse]) -> None:
    """Note the constants of a kernel that a condition takes as they are: no float may stand there."""
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        use = parameter_of(part.operand if isinstance(part, ast.UnaryOp) else part, parameters)
        if use and "constexpr" in use.annotation:
            use.flag = True


def read_choices(node: ast.Compare, parameters: dict[str, ParameterUse]) -> None:
    """Note the strings that a parameter is compared with."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.In, ast.NotEq, ast.NotIn)):
        return
    for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if use := parameter_of(one, parameters):
            strings = [
                c.value for c in ast.walk(other) if isinstance(c, ast.Constant) and isinstance(c.value, str)
            ]
            use.choices += [s for s in strings if s not in use.choices]


def parameter_of(node: ast.AST, parameters: dict[str, ParameterUse]) -> ParameterUse | None:
    """Return the parameter that a name is; None for anything else."""
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
        return parameter_of(node.func.value, parameters) if node.func.attr in ("size", "stride") else None
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return parameter_of(node.value, parameters)
    return None


def _place(node: ast.AST, parameters: dict[str, ParameterUse]) -> tuple[ParameterUse, int] | None:
    """Return the parameter and the dimension of ``x.shape[i]`` or ``x.size(i)``."""
    if isinstance(node, ast.Subscript):
        use, index = _shape_of(node.value, parameters), _constant(node.slice)
        return (use, index) if use and index is not None else None
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
        use, index = parameter_of(node.func.value, parameters), _constant(node.args[0])
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
        return parameter_of(node.value, parameters)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "dim":
        return parameter_of(node.func.value, parameters)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        return _shape_of(node.args[0], parameters)
    return None
