"""Guess the call of an entry from how its parameters are used, what its docstring says, and what names usually mean."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall, names_in
from accelopt_profiling.problems.inference.conventions import (
    names_a_size,
    usual_size,
    usual_tensor,
    usual_value,
)
from accelopt_profiling.problems.inference.docstring_shapes import (
    comment_shapes,
    docstring_shapes,
    docstring_types,
)
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.inductor_kernel import inductor_call, inductor_program
from accelopt_profiling.problems.inference.launch_grid import launch_grid
from accelopt_profiling.problems.inference.parameter_use import ParameterUse
from accelopt_profiling.problems.inference.strides import is_step, stride_dims, stride_values, strides_of
from accelopt_profiling.problems.inference.usage import FunctionUse

_BY_RANK = {
    0: [],
    1: ["columns"],
    2: ["rows", "columns"],
    3: ["batch", "rows", "columns"],
    4: ["batch", "heads", "rows", "columns"],
}
#: Names of sizes that a tensor has by its rank alone.
GUESSED_SIZES = frozenset(size for sizes in _BY_RANK.values() for size in sizes)
#: The part of a name that says values, beside a name that says keys: ``v``, ``value_cache``.
_VALUES = re.compile(r"(?<![a-z])(values?|v)(?![a-z])", re.IGNORECASE)
#: Names of the number of elements of a tensor.
_ELEMENTS = re.compile(r"(\w*_)?elem(ent)?s|n(um)?_?elem\w*|x?numel|input_size|total_size")


@dataclass
class _Guessing:
    text: str
    use: FunctionUse
    call: InferredCall
    shapes: dict[str, list[str]]
    alternatives: dict[str, list[list[str]]]

    def __post_init__(self) -> None:
        """Take of the shapes that the documentation offers those of the rank that the code has."""
        unpacked = [p for p in self.use.parameters.values() if p.rank is not None and any(p.dims)]
        fitting = (
            n for p in unpacked for n, d in enumerate(self.alternatives.get(p.name, [])) if len(d) == p.rank
        )
        chosen = next(fitting, 0)
        self.docs = {name: shapes[min(chosen, len(shapes) - 1)] for name, shapes in self.alternatives.items()}

    def size(self, name: str) -> str:
        return self.call.add_size(name, usual_size(name))

    def dims(self, use: ParameterUse) -> tuple[list[str], str]:
        """Return the dimensions that the code or the documentation gives a tensor, and which of them; []
        where none does."""
        stated = self.docs.get(use.name, [])
        if use.rank is not None and (any(use.dims) or not stated):
            dims = [d or (stated[n] if len(stated) == use.rank else "") for n, d in enumerate(use.dims)]
            dims = [d or use.named.get(n, "") or use.named.get(n - use.rank, "") for n, d in enumerate(dims)]
            return dims, f"rank from line {use.line}" if use.line else "rank from the code"
        if stated:
            return stated, "shape from the docstring"
        if use.at_least:
            rank = self._rank(use)
            return [
                use.named.get(n, "") or use.named.get(n - rank, "") for n in range(rank)
            ], "rank from the code"
        return [], ""

    def _rank(self, use: ParameterUse) -> int:
        """Return the rank of a tensor of which the code shows a dimension or two: that of the main tensor, if
        it has more."""
        if use.indices:
            return use.indices
        usual = usual_tensor(use.name)
        first_alone = use.at_least == 1 and list(use.named) == [0]
        if usual.get("vector") or usual.get("rows") or usual.get("dims") or first_alone:
            return use.at_least
        return max(use.at_least, len(_main(self)) or 2)


def guess_call(text: str, entry: EntryCandidate, functions: dict[str, FunctionUse]) -> InferredCall:
    """Guess the call of ``entry``, which is a function of ``functions``. Nothing is run."""
    use = functions[entry.function]
    stated = (inductor_call if entry.kind == "kernel" else inductor_program)(use.node, entry.name)
    if stated is not None:
        return stated
    call = InferredCall(entry.name)
    docs = {**docstring_shapes(use.node), **comment_shapes(text, use.node)}
    guessing = _Guessing(text, use, call=call, shapes={}, alternatives=docs)
    parameters = list(use.parameters.values())[entry.skip :]
    stated_types = docstring_types(use.node)
    for parameter in parameters:
        if not parameter.annotation and stated_types.get(parameter.name) in ("int", "float", "bool"):
            parameter.annotation = stated_types[parameter.name]
    if entry.kind == "kernel":
        _guess_launch(guessing, parameters)
        return call
    required = [p for p in parameters if p.default is None]
    kinds = {p.name: _is_tensor(p, guessing) for p in required}
    _add_tensors(guessing, [p for p in required if kinds[p.name]])
    for parameter in required:
        argument = _tensor(guessing, parameter) if kinds[parameter.name] else _value(guessing, parameter)
        call.arguments.append(argument)
    for tensor in call.tensors:
        stated_type = stated_types.get(tensor.name, "")
        if "int" in stated_type and tensor.dtype != stated_type:
            tensor.dtype, tensor.fill = stated_type, "index"
            tensor.reason = f"{tensor.reason}, dtype from the docstring"
    _name_classes(guessing)
    for tensor in call.tensors if entry.kind == "module" else []:
        if tensor.dtype == "bfloat16":  # as the weights that it is built with
            tensor.dtype = "float32"
    _order(call, use, entry)
    call.drop_unused_sizes()
    return call


def _name_classes(guessing: _Guessing) -> None:
    """Call the columns of rows that have labels a vocabulary, whose size a letter does not tell."""
    main, call = _main(guessing), guessing.call
    labelled = any(usual_tensor(a.name).get("labels") for a in call.tensors)
    if labelled and len(main) == 2 and len(main[1]) == 1:
        call.merge(call.add_size("vocab", usual_size("vocab")), main[1])


def add_argument(
    call: InferredCall, text: str, use: FunctionUse, name: str, tensor: bool
) -> InferredArgument:
    """Add the argument ``name`` that has a default to a call, as a tensor or a number."""
    guessing = _Guessing(
        text,
        use,
        call=call,
        shapes={a.name: a.dims for a in call.tensors},
        alternatives=docstring_shapes(use.node),
    )
    parameter = use.parameters[name]
    argument = _tensor(guessing, parameter) if tensor else _value(guessing, parameter)
    call.arguments.append(argument)
    return argument


def _order(call: InferredCall, use: FunctionUse, entry: EntryCandidate) -> None:
    """Put the arguments into the order of the parameters.

    What follows a parameter that is left out goes by name.
    """
    names = list(use.parameters)[entry.skip :]
    call.arguments.sort(key=lambda a: names.index(a.name))
    argument_names = [a.name for a in call.arguments]
    leading = 0
    while (
        leading < len(argument_names)
        and names[leading] == argument_names[leading]
        and argument_names[leading] not in use.keyword_only
    ):
        leading += 1
    call.keywords = argument_names[leading:]


def order_arguments(call: InferredCall, use: FunctionUse, entry: EntryCandidate) -> None:
    """Restore the order after arguments were added.

    Autograd functions take no names, so that gaps get defaults.
    """
    _order(call, use, entry)
    if call.keywords and entry.kind == "autograd":
        names = list(use.parameters)[entry.skip :]
        last = max(names.index(k) for k in call.keywords)
        for name in names[: last + 1]:
            default = use.parameters[name].default
            if call.argument(name) is None and default is not None:
                call.arguments.append(
                    InferredArgument(name, "value", value=ast.unparse(default), reason="its default")
                )
        _order(call, use, entry)


def _is_tensor(use: ParameterUse, guessing: _Guessing) -> bool:
    annotation = use.annotation
    if "Tensor" in annotation and "int" not in annotation.lower().replace("pointer", ""):
        return not re.match(r"(typing\.)?(List|list|Tuple|tuple|Sequence)\b", annotation)
    if re.match(
        r"(typing\.)?(Optional\[)?(int|float|bool|str|dtype|torch\.dtype|Callable|List|list|Tuple|tuple|Dict)\b",
        annotation,
    ):
        return False
    if use.choices or use.called or use.dtype_like or use.name.endswith("shape"):
        return False
    if use.tensor or use.rank is not None or use.at_least or use.name in guessing.docs:
        return True
    if use.flag or use.whole or use.scalar:
        return False
    return usual_value(use.name) is None and not names_a_size(
        use.name.lower().removeprefix("n_") if len(use.name) > 1 else "-"
    )


def _add_tensors(guessing: _Guessing, tensors: list[ParameterUse]) -> None:
    """Settle the dimensions of all tensors: those that the code names first, since the others follow them."""
    for use in tensors:
        dims, _ = guessing.dims(use)
        if dims and all(dims) and (use.rank is not None or use.name in guessing.docs):
            guessing.shapes[use.name] = [_sized(guessing, d) for d in dims]
    for use in tensors:
        if use.name not in guessing.shapes and not usual_tensor(use.name):
            guessing.shapes[use.name] = _filled(guessing, use)
    for use in tensors:
        if use.name not in guessing.shapes:
            guessing.shapes[use.name] = _filled(guessing, use)


def _sized(guessing: _Guessing, dimension: str) -> str:
    """Return a dimension whose names have sizes: those of a call are made for it."""
    if dimension.isdigit():
        return dimension
    names = names_in(dimension)
    if not names or not all(n.isidentifier() for n in names):
        name = re.sub(r"\W+", "_", dimension).strip("_") or "size"
        return guessing.size(name if name.isidentifier() else f"n{name}")
    for name in names:
        guessing.size(name)
    return dimension


def _main(guessing: _Guessing) -> list[str]:
    """Return the dimensions of the tensor that the others follow: the first with the highest rank."""
    return max(guessing.shapes.values(), key=len, default=[])


def _keys_dims(guessing: _Guessing, use: ParameterUse, rank: int) -> list[str]:
    """Return the dimensions of attention's keys for its values, where they have the same rank; [] for other tensors."""
    keys = _VALUES.sub(
        lambda match: {"v": "k", "value": "key", "values": "keys"}[match[0].lower()], use.name, count=1
    )
    dims = next((d for n, d in guessing.shapes.items() if n.lower() == keys.lower() != use.name.lower()), [])
    return list(dims) if len(dims) == (rank or len(dims)) else []


def _filled(guessing: _Guessing, use: ParameterUse) -> list[str]:
    """Return the dimensions of a tensor of which some or all are not named: as those of the main tensor, or
    by convention."""
    dims, _ = guessing.dims(use)
    usual = usual_tensor(use.name)
    main = _main(guessing)
    if not any(dims) and (keys := _keys_dims(guessing, use, len(dims))):
        return keys
    if use.single and not dims:
        return ["1"]
    if not any(dims) and len(usual.get("dims", [])) == (len(dims) or len(usual.get("dims", []))) > 0:
        renamed = {"batch": main[0] if len(main) > 2 else "batch", "rows": main[0] if main else "rows"}
        return [_sized(guessing, renamed.get(d, d)) for d in usual["dims"]]
    if not dims:
        if usual.get("vector"):
            return main[-1:] or [guessing.size("columns")]
        if usual.get("rows"):
            return main[:-1] or [guessing.size("rows")]
        return list(main) or [guessing.size(d) for d in _BY_RANK[2]]
    rank = len(dims)
    plain = _BY_RANK.get(rank) or [f"size{n}" for n in range(rank)]
    follows = main if len(main) == rank else main[-rank:] if len(main) > rank else []
    if usual.get("rows") and len(main) > rank:
        follows = main[:rank]
    own = [d or (follows[n] if follows else plain[n]) for n, d in enumerate(dims)]
    return [_sized(guessing, d) for d in own]


def _tensor(guessing: _Guessing, use: ParameterUse) -> InferredArgument:
    if use.name not in guessing.shapes:
        _add_tensors(guessing, [use])
    dims, why = guessing.dims(use)
    usual = usual_tensor(use.name)
    argument = InferredArgument(
        use.name, "tensor", guessing.shapes[use.name], firm=bool(dims) and use.rank is not None
    )
    argument.dtype, argument.fill = usual.get("dtype", "bfloat16"), usual.get("fill", "random")
    if use.byte_type:
        argument.dtype, argument.fill = use.byte_type, "integers"
        why = f"{why}, bytes since the kernel makes bytes of it".removeprefix(", ")
    elif use.integers and not argument.dtype.startswith("int"):
        argument.dtype, argument.fill = "int64" if argument.dtype == "bfloat16" else "int32", "index"
        why = f"{why}, integers since it is used as an index".removeprefix(", ")
    elif use.packed and argument.dtype == "bfloat16":
        argument.dtype, argument.fill = use.packed, "integers"
        why = f"{why}, integers since its bits are taken apart".removeprefix(", ")
    argument.reason = why or ("by its name" if usual else "a tensor by its use" if use.tensor else "a guess")
    return argument


def _value(guessing: _Guessing, use: ParameterUse) -> InferredArgument:
    value, why = _value_of(guessing, use)
    return InferredArgument(use.name, "value", value=value, reason=why)


def _value_of(guessing: _Guessing, use: ParameterUse) -> tuple[str, str]:
    annotation = use.annotation.replace("typing.", "")
    usual = usual_value(use.name)
    if annotation == "int" and usual in ("False", "True"):
        usual = None
    if annotation.startswith(("Optional", "Union")) and "None" in annotation + "None" * annotation.startswith(
        "Optional"
    ):
        return "None", "optional"
    if annotation.endswith("| None"):
        return "None", "optional"
    if use.choices and (annotation in ("", "str") or "constexpr" in annotation):
        return repr(use.choices[0]), f"one of {', '.join(use.choices[:4])}"
    if use.flag and "constexpr" in annotation and usual and not re.fullmatch(r"True|False|None|-?\d+", usual):
        return "False", "a flag that a kernel tests"
    if annotation == "bool" or (use.flag and not use.whole and not usual and not annotation):
        return "False", "a flag"
    if use.dtype_like or annotation.endswith("dtype"):
        return (usual if usual and usual.startswith("torch.") else "torch.bfloat16"), "a dtype by its use"
    if re.match(r"(List|list|Tuple|tuple|Sequence)", annotation) or use.name.endswith(("_shape", "shape")):
        if "Tensor" in annotation:
            guessing.shapes.setdefault(use.name, _main(guessing) or [guessing.size(d) for d in _BY_RANK[2]])
            shape = ", ".join(guessing.shapes[use.name])
            return f'[torch.randn({shape}, device="cuda", dtype=torch.bfloat16)]', "a list of tensors"
        last = (_main(guessing) or [guessing.size("columns")])[-1]
        return f"({last},)", "a shape by its name"
    if use.called or annotation.startswith("Callable"):
        return "None", "a function, which cannot be inferred"
    size = next((s for s in guessing.call.sizes if s.lower() == use.name.lower()), None)
    if size is None and _ELEMENTS.fullmatch(use.name.lower()) and (main := _main(guessing)):
        return " * ".join(main), "the elements of a tensor"
    whole = annotation == "int" or use.whole
    if size:
        return size, "the size of that name"
    if use.optional and not names_a_size(use.name):
        return "None", "compared with None"
    if usual is not None:
        if whole and not re.fullmatch(r"-?\d+", usual):
            return str(int(float(usual))) if re.fullmatch(
                r"-?[\d.]+", usual
            ) else usual, "a usual value of this name"
        return usual, "a usual value of this name"
    if names_a_size(use.name) or (whole and annotation != "float"):
        close = _size_like(guessing, use.name)
        return close or str(usual_size(use.name)), "a size by its name or use"
    if annotation == "float" or use.scalar:
        return "1.0", "a number by its use"
    if annotation == "str":
        return '""', "a string"
    return "None", "nothing tells what it is"


def _size_like(guessing: _Guessing, name: str) -> str | None:
    """Return a size whose usual value is that of ``name``: ``n_cols`` is ``columns``."""
    usual = usual_size(name)
    return next((s for s, size in guessing.call.sizes.items() if size == usual and names_a_size(name)), None)


def _guess_launch(guessing: _Guessing, parameters: list[ParameterUse]) -> None:
    """Guess the arguments of a kernel that no function launches, and its grid."""
    call = guessing.call
    for name in _BY_RANK[2]:
        guessing.size(name)
    for use in parameters:
        use.tensor |= use.name in guessing.docs or use.name.lower().endswith(("_ptr", "_pointer"))
    strides = _shape_by_strides(guessing, parameters)
    for use in parameters:
        if use.tensor:
            call.arguments.append(_tensor(guessing, use))
        elif use.default is not None:
            continue
        elif use.name in strides:
            call.arguments.append(
                InferredArgument(use.name, "value", value=strides[use.name][0], reason="a stride")
            )
        else:
            call.arguments.append(_launch_value(guessing, use))
    names = [p.name for p in parameters]
    argument_names = [a.name for a in call.arguments]
    leading = next(
        (n for n, (a, b) in enumerate(zip(names, argument_names, strict=False)) if a != b),
        len(argument_names),
    )
    call.keywords = argument_names[leading:]
    values = {a.name: a.value for a in call.arguments if a.kind == "value"}
    rows = {"rows", *(dims[0] for dims in guessing.shapes.values() if dims)}
    stepped = {name: dimension for name, (_, dimension) in strides.items() if dimension}
    call.grid = launch_grid(guessing.use.node, values, rows, stepped)
    call.drop_unused_sizes()


def _shape_by_strides(guessing: _Guessing, parameters: list[ParameterUse]) -> dict[str, tuple[str, str]]:
    """Settle the shapes of a kernel's tensors, by its docstring or its strides. Return of each stride its value, and
    the dimension that it steps along, "" where that is not known."""
    tensors = [p.name for p in parameters if p.tensor]
    sizes = [p.name for p in parameters if not p.tensor and "stride" not in p.name.lower()]
    strides = strides_of([p.name for p in parameters], tensors)
    meanings: dict[str, tuple[str, str]] = {}
    for name in tensors:
        own = strides.pop(name, {})
        step_dims = stride_dims(own, sizes)
        usual = _BY_RANK.get(max(len(step_dims), 2), _BY_RANK[2])
        step_dims += [""] * (len(usual) - len(step_dims))
        documented = guessing.docs.get(name, [])
        if len(documented) == 1 and _counts_elements(documented[0]):
            documented = []
        stated = documented or [a or b for a, b in zip(step_dims, usual, strict=False)]
        guessing.shapes[name] = dims = [_sized(guessing, d) for d in stated]
        values = stride_values(own, dims)
        meanings |= {
            n: (v, f"{name}.shape[{at}]" * (at < len(dims))) for at, (n, v) in enumerate(values.items())
        }
    for own in strides.values():
        meanings |= {n: (v, "") for n, v in stride_values(own, [] if is_step(own) else _BY_RANK[2]).items()}
    return meanings


def _counts_elements(name: str) -> bool:
    """Tell whether a kernel's size of this name is that of whole tensors."""
    low = name.lower()
    return bool(_ELEMENTS.fullmatch(low) or re.fullmatch(r"(n|total\w*|size|length)", low))


def _launch_value(guessing: _Guessing, use: ParameterUse) -> InferredArgument:
    low = use.name.lower()
    if use.name in {name for dims in guessing.shapes.values() for d in dims for name in names_in(d)}:
        return InferredArgument(use.name, "value", value=use.name, reason="the size of that name")
    product = {"m", "n", "k"} <= {name.lower() for name in guessing.use.parameters}
    if product and low in ("m", "n", "k"):
        dimension = "rows" if low == "m" else "columns"
        return InferredArgument(use.name, "value", value=dimension, reason="a dimension of the product")
    if _counts_elements(use.name):
        return InferredArgument(use.name, "value", value="rows * columns", reason="the elements of a tensor")
    if re.fullmatch(r"(m|n_?rows|num_?rows|rows|batch\w*|b)", low):
        return InferredArgument(use.name, "value", value="rows", reason="rows by its name")
    if re.fullmatch(r"(k|n_?cols|num_?cols|cols|n_?columns|columns|hidden\w*|d|dim|row_size)", low):
        return InferredArgument(use.name, "value", value="columns", reason="columns by its name")
    if "block" in low or low.startswith(("bs", "bm", "bn", "bk", "tile")):
        return InferredArgument(use.name, "value", value="64", reason="a tile by its name")
    argument = _value(guessing, use)
    if argument.value == "None" and "constexpr" in use.annotation:
        argument.value = "64" if low.endswith("size") else "False"
        argument.reason = "a constant of which nothing tells what it is"
    return argument
