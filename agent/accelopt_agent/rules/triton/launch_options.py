"""Launches with other values of ``num_warps`` and ``num_stages``, at the launch or as autotune configs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.parsed_source import canonical
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.block_size import number_of
from accelopt_agent.rules.analysis.triton.config_list import OPTIONS, TuneConfig, config_text, open_configs
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer


def neighbours(
    kernel: TritonKernel, option: str, default: int, near: Callable[[int], list[int]]
) -> Iterator[Rewrite]:
    """Yield rewrites that set ``option`` to each value ``near`` the present one (``default`` where none is written)."""
    if kernel.is_autotuned:
        yield from _more_configs(kernel, option, default, near)
        return
    if not kernel.launches or len({_present(kernel, la, option, default) for la in kernel.launches}) != 1:
        return
    present = _present(kernel, kernel.launches[0], option, default)
    for value in near(present) if present is not None else ():
        if all(launch.call.args for launch in kernel.launches):
            edits = [e for la in kernel.launches for e in _set(kernel, la, option, str(value))]
            edits = list(dict.fromkeys(edits))
            yield Rewrite((), f"Launch with {option}={value} instead of {present}.", tuple(edits))


def _present(kernel: TritonKernel, launch: KernelLaunch, option: str, default: int) -> int | None:
    keyword = launch.keyword(option)
    return default if keyword is None else integer(number_of(kernel, launch, keyword.value))


def _set(kernel: TritonKernel, launch: KernelLaunch, option: str, text: str) -> list[ByteEdit]:
    keyword = launch.keyword(option)
    number = number_of(kernel, launch, keyword.value) if keyword is not None else None
    if number is None:
        return kernel.keyword_edits(launch.call, option, text)
    return [kernel.source.replace(number, text)]


def _more_configs(
    kernel: TritonKernel, option: str, default: int, near: Callable[[int], list[int]]
) -> Iterator[Rewrite]:
    """Add a copy of each config with another value. The autotuner keeps the better one."""
    source = kernel.source
    if not kernel.configs:
        yield from _beside_others(kernel, option, default, near)
        return
    written = {source.key(config) for config in kernel.configs}
    for config in kernel.configs:
        keyword = next((a for a in config.args if a.keyword is not None and a.keyword.value == option), None)
        present = default if keyword is None else integer(keyword.value)
        for value in near(present) if present is not None else ():
            start, code = source.start(config), source.code(config).encode()
            if keyword is not None:
                at, end = source.start(keyword.value) - start, source.end(keyword.value) - start
                text = (code[:at] + str(value).encode() + code[end:]).decode()
            else:
                at = source.end(config.args[-1]) - start
                text = (code[:at] + f", {option}={value}".encode() + code[at:]).decode()
            if canonical(text) not in written:
                edits = source.added(start, source.end(config), [text])
                sizes = _sizes(kernel, config)
                what = f"{sizes} with {option}={value}" if sizes else f"{option}={value}"
                yield Rewrite(tuple(edits), f"Let the autotuner try {what} as well.")


def _beside_others(
    kernel: TritonKernel, option: str, default: int, near: Callable[[int], list[int]]
) -> Iterator[Rewrite]:
    """Add configurations to a list that does not stand in the decorator: copies of the one with the largest tile."""
    listed = open_configs(kernel)
    whole = [c for c in listed.configs if c.complete] if listed is not None else []
    if listed is None or not whole:
        return
    largest = max(whole, key=lambda c: math.prod(max(v) for n, v in c.numbers.items() if n not in OPTIONS))
    tried = {v for c in whole if _tile(c) == _tile(largest) for v in c.numbers.get(option, (default,))}
    for value in near(max(largest.numbers.get(option, (default,)))):
        if value not in tried and option not in largest.others:
            text = config_text(kernel, largest, {option: value})
            yield Rewrite((), f"Let the autotuner try {text} as well.", tuple(listed.added([text])))


def _tile(config: TuneConfig) -> dict[str, tuple[int, ...]]:
    return {n: v for n, v in config.numbers.items() if n not in OPTIONS}


def _sizes(kernel: TritonKernel, config: cst.Call) -> str:
    """List the settings of the kernel's own arguments in a config, as ``name=value``."""
    settings = config.args[0].value if config.args else None
    entries = settings.elements if isinstance(settings, cst.Dict) else ()
    pairs = [(e.key, e.value) for e in entries if isinstance(e, cst.DictElement)]
    code = kernel.source.code
    return ", ".join(f"{code(key).strip(chr(39) + chr(34))}={code(value)}" for key, value in pairs)


#: Triton's default, and bounds that every supported GPU runs (1024 threads or fewer per program).
_WARPS, _LEAST_WARPS, _MOST_WARPS = 4, 1, 16


def num_warps(kernel: TritonKernel) -> Iterator[Rewrite]:
    yield from neighbours(kernel, "num_warps", _WARPS, _near_warps)


def _near_warps(warps: int) -> list[int]:
    return [n for n in (warps * 2, warps // 2) if _LEAST_WARPS <= n <= _MOST_WARPS]


#: Triton's default on NVIDIA GPUs, and bounds beyond which shared memory runs out for useful tiles.
_STAGES, _LEAST_STAGES, _MOST_STAGES = 3, 1, 6


def num_stages(kernel: TritonKernel) -> Iterator[Rewrite]:
    in_loop = any(
        isinstance(p, cst.For) for load in kernel.calls("load") for p in kernel.source.parents(load)
    )
    if in_loop:
        yield from neighbours(
            kernel,
            "num_stages",
            _STAGES,
            lambda n: [m for m in (n + 1, n - 1) if _LEAST_STAGES <= m <= _MOST_STAGES],
        )
