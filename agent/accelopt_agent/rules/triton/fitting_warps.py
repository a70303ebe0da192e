"""Launch with as many warps as a program's lanes fill: those beyond hold copies, and of more each holds too much."""

from __future__ import annotations

import math
from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.block_size import passed
from accelopt_agent.rules.analysis.triton.config_list import OPTIONS, config_text, open_configs
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.launch_sizes import measured_setting, option
from accelopt_profiling.triton.functions.table import functions_of

#: Elements for a warp: a lane moves 32 bytes of them in float32, 16 in half precision.
_PER_WARP = 256
#: Triton's default, and what a program may have at most where its row is long.
_WARPS, _MOST = 4, 16
#: A tile has no more axes than this, one for each range of another length.
_AXES = 3
#: The place of the block's shape among the arguments of ``tl.make_block_ptr``.
_BLOCK_SHAPE = 4
#: What gives a value more lanes, or fewer, than its ranges have.
_SHAPED = functions_of("product", "shape")


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    extents = {kernel.source.code(length): length for length in _lengths(kernel)}
    if kernel.calls(*_SHAPED) or not 0 < len(extents) <= _AXES:
        return
    names = list(extents)
    if len(names) == 1 and _has_axes(kernel):
        names *= 2
    if (heuristics := kernel.heuristics) is None:
        return
    if "num_warps" in heuristics:  # what an autotuner or a launch says is overwritten by that
        yield from _in_heuristic(kernel, heuristics, extents, names)
        return
    if kernel.is_autotuned:
        yield from _more_configs(kernel, names)
        return
    for most in (None, _MOST):
        counts = [
            _warps(kernel, launch, extents=extents, names=names, most=most) for launch in kernel.launches
        ]
        edits: list[ByteEdit] = []
        for launch, count in zip(kernel.launches, counts, strict=True):
            if count is not None and launch.call.args and count != _written(kernel, launch):
                edits += kernel.keyword_edits(launch.call, "num_warps", count)
        if counts and None not in counts and edits:
            texts = " and ".join(dict.fromkeys(f"num_warps={count}" for count in counts))
            yield Rewrite((), f"Launch with {texts}, a warp for each {_PER_WARP} elements.", tuple(edits))


def _lengths(kernel: TritonKernel) -> Iterator[cst.BaseExpression]:
    """Yield the lengths of ranges and of the axes of blocks that a pointer stands for."""
    for call in kernel.calls("arange"):
        if call.args:
            yield call.args[-1].value
    for call in kernel.calls("make_block_ptr"):
        keywords = (a.value for a in call.args if a.keyword is not None and a.keyword.value == "block_shape")
        placed = [a.value for a in call.args if a.keyword is None]
        shape = next(keywords, placed[_BLOCK_SHAPE] if len(placed) > _BLOCK_SHAPE else None)
        if isinstance(shape, (cst.Tuple, cst.List)):
            yield from (element.value for element in shape.elements)


def _has_axes(kernel: TritonKernel) -> bool:
    """Return whether ranges become axes of a tile, as in ``rows[:, None]``."""
    indices = kernel.source.walk(kernel.function.body, cst.Subscript)
    return any(n.value == "None" for i in indices for e in i.slice for n in kernel.source.walk(e, cst.Name))


def _written(kernel: TritonKernel, launch: KernelLaunch) -> str | None:
    """Return what a launch says for its warps as text.

    None for an expression that cannot stand in another.
    """
    keyword = launch.keyword("num_warps")
    if keyword is None:
        return str(_WARPS)
    simple = isinstance(keyword.value, (cst.Integer, cst.Name, cst.Attribute))
    return kernel.source.code(keyword.value) if simple else None


def _fitting(lanes: int, most: int) -> int:
    return min(most, math.ceil(lanes / _PER_WARP))


def _measured_lanes(kernel: TritonKernel, names: list[str]) -> int | None:
    sizes = [int(n) if n.isdigit() else measured_setting(kernel.subject, n) for n in names]
    return math.prod(n or 0 for n in sizes) if all(sizes) else None


def _warps(
    kernel: TritonKernel,
    launch: KernelLaunch,
    extents: dict[str, cst.BaseExpression],
    names: list[str],
    most: int | None,
) -> str | None:
    """Return the warps for a launch as text: a number where its ranges have fixed lengths, else what follows from the
    lengths that it computes. None where those are not known, or nothing changes in the profiled case."""
    written = _written(kernel, launch)
    present = option(launch, "num_warps", _WARPS) or measured_setting(kernel.subject, "num_warps")
    if written is None or present is None:
        return None
    number, texts = 1, list[str]()
    for name in names:
        argument = launch.arguments.get(name)
        fixed = integer(extents[name]) or integer(
            passed(kernel, launch, name) if name in kernel.constexprs else None
        )
        if fixed is not None:
            number *= fixed
        elif name in kernel.constexprs and argument is not None and _plain(kernel, argument):
            texts.append(kernel.source.code(argument))
        else:
            return None
    lanes = _measured_lanes(kernel, names) if texts else number
    if lanes is not None and (lanes // _PER_WARP > present) is (most is None):
        return None  # the other bound says the same, or more
    if lanes is not None and _fitting(lanes, most or present) == present:
        return None
    if not texts and written.isdigit():
        return str(_fitting(number, most or present))
    if kernel.hides("min"):
        return None
    if not texts:
        return f"min({written}, {_fitting(number, _MOST)})"
    product = " * ".join([*texts, *([str(number)] if number > 1 else [])])
    return f"min({most or written}, {kernel.names.spelled('triton.cdiv')}({product}, {_PER_WARP}))"


def _in_heuristic(
    kernel: TritonKernel,
    heuristics: dict[str, cst.BaseExpression],
    extents: dict[str, cst.BaseExpression],
    names: list[str],
) -> Iterator[Rewrite]:
    """Bound the warps that ``triton.heuristics`` computes by what the lanes of the same launch fill."""
    lanes, present = _measured_lanes(kernel, names), measured_setting(kernel.subject, "num_warps")
    if lanes is None or present is None or _fitting(lanes, present) == present or kernel.hides("min"):
        return
    order = [n for n in heuristics if n == "num_warps" or n in kernel.constexprs]
    texts = []
    for name in names:
        if integer(extents[name]) is not None:
            texts.append(name)
        elif name in kernel.constexprs and name not in order[order.index("num_warps") :]:
            texts.append(f'args["{name}"]')
        else:
            return  # computed in the kernel, or only after the warps
    heuristic = heuristics["num_warps"]
    text = kernel.source.code(heuristic)
    function = text if isinstance(heuristic, (cst.Name, cst.Attribute)) else f"({text})"
    bound = f"{kernel.names.spelled('triton.cdiv')}({' * '.join(texts)}, {_PER_WARP})"
    edit = kernel.source.replace(heuristic, f"lambda args: min({function}(args), {bound})")
    yield Rewrite((), f"Launch with no more warps than {bound}, one for each {_PER_WARP} elements.", (edit,))


def _plain(kernel: TritonKernel, argument: cst.BaseExpression) -> bool:
    """Return whether an argument can be written down twice."""
    if isinstance(argument, cst.Call):
        return kernel.names.path(argument.func) == "triton.next_power_of_2"
    return isinstance(argument, (cst.Name, cst.Attribute, cst.Subscript))


def _more_configs(kernel: TritonKernel, names: list[str]) -> Iterator[Rewrite]:
    """Let the autotuner try the configuration that it chose in the profiled case with the warps that its lanes fill."""
    listed, lanes = open_configs(kernel), _measured_lanes(kernel, names)
    present = measured_setting(kernel.subject, "num_warps")
    if (
        listed is None
        or lanes is None
        or present is None
        or any("num_warps" in c.others for c in listed.configs)
    ):
        return
    warps = _fitting(lanes, present if lanes // _PER_WARP <= present else _MOST)
    sized = [c for c in listed.configs if c.complete]
    tried = {n for c in sized for n in c.numbers.get("num_warps", (_WARPS,))}
    for config in sized:
        sizes = {n: v for n, v in config.numbers.items() if n not in OPTIONS}
        if warps in tried or not all(measured_setting(kernel.subject, n) in v for n, v in sizes.items()):
            continue
        like = {n: s for n in sizes if (s := measured_setting(kernel.subject, n)) is not None}
        text = config_text(kernel, config, {**like, "num_warps": warps})
        yield Rewrite((), f"Let the autotuner try {text} as well.", tuple(listed.added([text])))
        return
