"""Finds where a launch takes a block size from, and what in its grid follows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer


@dataclass(frozen=True)
class BlockSize:
    """``places`` are the numbers in the text that set a block to ``value`` elements; ``less_one`` those that are one
    less, as in ``(n + 31) // 32``; ``covered`` is what the grid splits into blocks, None where it splits nothing."""

    value: int
    places: tuple[cst.Integer, ...]
    less_one: tuple[cst.Integer, ...]
    covered: cst.BaseExpression | None

    def edits(self, kernel: TritonKernel, value: int) -> list[ByteEdit]:
        """Set the block to ``value`` elements wherever the text gives its size."""
        return [
            *(kernel.source.replace(node, str(value)) for node in self.places),
            *(kernel.source.replace(node, str(value - 1)) for node in self.less_one),
        ]


def passed(kernel: TritonKernel, launch: KernelLaunch, name: str) -> cst.Integer | None:
    """Return the number that becomes the constexpr argument ``name``: at the launch, in a variable of the
    function that launches, a default, or a constant of the module."""
    argument = launch.arguments.get(name)
    if argument is None:
        return _default(kernel.function.params, name)
    return number_of(kernel, launch, argument)


def number_of(kernel: TritonKernel, launch: KernelLaunch, node: cst.BaseExpression) -> cst.Integer | None:
    """Return the number that an expression of the launch stands for, itself or through a variable that nothing else
    needs."""
    if isinstance(node, cst.Integer):
        return node
    if not isinstance(node, cst.Name):
        return None
    function, name = launch.function, node.value
    if function is not None:
        bound = list(_bindings(kernel, function.body, name))
        if bound:
            alone = len(bound) == 1 and not _feeds_other_launches(kernel, launch, name)
            return bound[0] if alone and isinstance(bound[0], cst.Integer) else None
        if any(p.name.value == name for p in kernel.source.walk(function.params, cst.Param)):
            return None if _is_given(kernel, function, name) else _default(function.params, name)
    constants = list(_bindings(kernel, kernel.source.module, name))
    if len(constants) != 1 or not isinstance(constants[0], cst.Integer):
        return None
    return constants[0] if _is_read_here_only(kernel, launch, name) else None


def _bindings(kernel: TritonKernel, body: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression | None]:
    """Yield what statements below ``body`` bind a variable to, None for what is no single expression; of a
    module only its own statements."""
    for node in kernel.source.below(body):
        if not isinstance(node, (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.For)):
            continue
        inner = (p for p in kernel.source.parents(node) if isinstance(p, cst.FunctionDef))
        if isinstance(body, cst.Module) and next(inner, None) is not None:
            continue
        value = node.value if isinstance(node, (cst.Assign, cst.AnnAssign)) else None
        targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
        for target in targets:
            if isinstance(target, cst.Name) and target.value == name:
                yield value
            elif isinstance(target, (cst.Tuple, cst.List)):
                names = [e.value.value if isinstance(e.value, cst.Name) else "" for e in target.elements]
                parts = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
                if name in names:
                    yield parts[names.index(name)].value if len(parts) == len(names) else None


def _is_given(kernel: TritonKernel, function: cst.FunctionDef, parameter: str) -> bool:
    """Return whether some call in the file passes ``parameter`` to ``function``, so that its default says little."""
    names = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
    place = names.index(parameter) if parameter in names else len(names)
    for call in kernel.source.walk(kernel.source.module, cst.Call):
        callee = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        if isinstance(callee, cst.Name) and callee.value == function.name.value:
            keywords = [a.keyword.value for a in call.args if a.keyword is not None]
            placed = len(call.args) - len(keywords)
            if parameter in keywords or placed > place or any(a.star for a in call.args):
                return True
    return False


def _feeds_other_launches(kernel: TritonKernel, launch: KernelLaunch, name: str) -> bool:
    """Return whether another launch of the function is given a variable."""
    assert launch.function is not None
    calls = kernel.source.walk(launch.function.body, cst.Call)
    others = [c for c in calls if isinstance(c.func, cst.Subscript) and c is not launch.call]
    return any(n.value == name for c in others for a in c.args for n in kernel.source.walk(a.value, cst.Name))


def _is_read_here_only(kernel: TritonKernel, launch: KernelLaunch, name: str) -> bool:
    """Return whether no other function reads a module's constant: changing it changes this launch alone."""
    for occurrence in kernel.source.walk(kernel.source.module, cst.Name):
        parent = kernel.source.parent(occurrence)
        is_word = (isinstance(parent, cst.Arg) and parent.keyword is occurrence) or isinstance(
            parent, cst.Param
        )
        if occurrence.value != name or isinstance(parent, cst.AssignTarget) or is_word:
            continue
        around = [p for p in kernel.source.parents(occurrence) if isinstance(p, cst.FunctionDef)]
        hides = any(p.name.value == name for f in around for p in kernel.source.walk(f.params, cst.Param))
        if launch.function not in around and not hides:
            return False
    return True


def _default(parameters: cst.Parameters, name: str) -> cst.Integer | None:
    every = (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
    default = next((p.default for p in every if p.name.value == name), None)
    return default if isinstance(default, cst.Integer) else None


def grid_axes(kernel: TritonKernel, launch: KernelLaunch) -> tuple[list[cst.BaseExpression], str] | None:
    """Return what the launch gives for each grid axis, and the name that a grid function gives its argument
    ("" for none)."""
    grid: cst.BaseExpression | None = kernel.grid_expression(launch)
    meta: list[str] = []
    if isinstance(grid, cst.Name) and launch.function is not None:
        nested = kernel.source.walk(launch.function.body, cst.FunctionDef)
        function = next((f for f in nested if f.name.value == grid.value), None)
        returns = list(kernel.source.walk(function.body, cst.Return)) if function is not None else []
        meta = [p.name.value for p in function.params.params] if function is not None else []
        grid = returns[0].value if len(returns) == 1 else None
    if isinstance(grid, cst.Lambda):
        meta, grid = [p.name.value for p in grid.params.params], grid.body
    if grid is None:
        return None
    if not isinstance(grid, (cst.Tuple, cst.List)):
        return [grid], meta[0] if meta else ""
    if any(isinstance(e, cst.StarredElement) for e in grid.elements):
        return None
    return [e.value for e in grid.elements], meta[0] if meta else ""


def grid_axis(kernel: TritonKernel, launch: KernelLaunch, axis: int) -> tuple[cst.BaseExpression, str] | None:
    """Return what the launch gives for one grid axis, and the name that a grid function gives its
    argument."""
    axes = grid_axes(kernel, launch)
    return (axes[0][axis], axes[1]) if axes is not None and axis < len(axes[0]) else None


def is_shared(kernel: TritonKernel, launch: KernelLaunch, node: cst.BaseExpression) -> bool:
    """Return whether ``node`` is a variable that the function reads for something else than this launch as well."""
    if not isinstance(node, cst.Name) or launch.function is None:
        return False
    uses = [n for n in kernel.source.walk(launch.function.body, cst.Name) if n.value == node.value]
    elsewhere = [
        n for n in uses
        if not isinstance(kernel.source.parent(n), (cst.AssignTarget, cst.Attribute))
        and not any(p is launch.call for p in kernel.source.parents(n))
        and not (isinstance(arg := kernel.source.parent(n), cst.Arg) and arg.keyword is n)
    ]  # fmt: skip
    return bool(elsewhere)


def meaning(kernel: TritonKernel, launch: KernelLaunch, node: cst.BaseExpression) -> cst.BaseExpression:
    """Return ``node``, or what the function that launches assigned to it once."""
    if isinstance(node, cst.Name):
        assign = kernel.assigned(launch, node.value)
        if assign is not None:
            return assign.value
    return node


def grid_blocks(
    kernel: TritonKernel,
    launch: KernelLaunch,
    axis: int,
    name: str | None,
    number: cst.Integer | None,
    size: int,
) -> BlockSize | None:
    """Return the size of the blocks that a grid axis splits something into, as ``cdiv(n, size)`` or ``(n +
    size - 1) // size``, where it is the argument ``name`` given as ``number``, or ``size`` written out."""
    grid_entry = grid_axis(kernel, launch, axis)
    if grid_entry is None:
        return None
    split = meaning(kernel, launch, grid_entry[0])
    if (
        isinstance(split, cst.Call)
        and kernel.names.path(split.func) == "triton.cdiv"
        and len(split.args) == 2
    ):
        covered, block = (a.value for a in split.args)
        rest: list[cst.Integer] = []
    elif isinstance(split, cst.BinaryOperation) and isinstance(split.operator, cst.FloorDivide):
        rounded = _rounded_up(kernel, launch, split=split, name=name, meta=grid_entry[1], size=size)
        if rounded is None:
            return None
        covered, block, rest = rounded
    else:
        return None
    place = _same_block(kernel, launch, node=block, name=name, meta=grid_entry[1], size=size)
    if place is None:
        return None
    places = [*place, *([number] if number is not None else [])]
    return BlockSize(size, tuple(dict.fromkeys(places)), tuple(rest), covered)


def _same_block(
    kernel: TritonKernel,
    launch: KernelLaunch,
    node: cst.BaseExpression,
    name: str | None,
    meta: str,
    size: int,
) -> list[cst.Integer] | None:
    """Return the numbers behind ``node`` where it is the block's size.

    None for ``meta["BLOCK"]``. None for another.
    """
    if isinstance(node, cst.Subscript) and name is not None:
        written = kernel.source.code(node).replace("'", '"')
        return [] if written == f'{meta}["{name}"]' else None
    number = number_of(kernel, launch, node)
    return [number] if number is not None and integer(number) == size else None


def _rounded_up(
    kernel: TritonKernel,
    launch: KernelLaunch,
    split: cst.BinaryOperation,
    name: str | None,
    meta: str,
    size: int,
) -> tuple[cst.BaseExpression, cst.BaseExpression, list[cst.Integer]] | None:
    """Read ``(n + size - 1) // size`` or ``(n + 31) // 32``: what is split, the size, and the 31."""
    above, block = split.left, split.right
    if not isinstance(above, cst.BinaryOperation):
        return None
    if isinstance(above.operator, cst.Subtract) and isinstance(above.left, cst.BinaryOperation):
        plus = above.left
        if integer(above.right) == 1 and isinstance(plus.operator, cst.Add):
            same = _same_block(kernel, launch, node=plus.right, name=name, meta=meta, size=size) is not None
            return (plus.left, block, []) if same and not isinstance(plus.right, cst.Integer) else None
    if isinstance(above.operator, cst.Add) and isinstance(above.right, cst.Integer):
        return (above.left, block, [above.right]) if integer(above.right) == size - 1 else None
    return None
