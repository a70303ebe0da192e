"""Let the autotuner try tiles that its list lacks: those that fit a product and the target best, or wider ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.config_list import OPTIONS, TuneConfig, config_text, open_configs
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.product_tiles import ProductSchedule, present_product, schedules
from accelopt_agent.rules.analysis.triton.tile_dimensions import TileDimensions

#: How many configurations are added at once: each is compiled and timed once per key.
_ADDED = 2
#: Block sizes beyond which a tile twice as wide does not pay; with tl.dot registers run out much earlier.
_LEAST, _MOST, _MOST_OF_PRODUCT = 32, 8192, 128


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    listed = open_configs(kernel)
    configs = [c for c in listed.configs if c.complete] if listed is not None else []
    if listed is None or not configs:
        return
    names = _names(kernel.subject)
    new = _wider(kernel.subject, configs) if names is None else _scheduled(kernel.subject, configs, names)
    if new:
        texts = [config_text(kernel, like, settings) for like, settings in new]
        tiles = " and ".join(", ".join(f"{n}={v}" for n, v in settings.items()) for _, settings in new)
        yield Rewrite((), f"Let the autotuner try {tiles} as well.", tuple(listed.added(texts)))


#: A configuration to copy and what to change in it.
Copy = tuple[TuneConfig, dict[str, int]]


def _scheduled(subject: RuleContext, configs: list[TuneConfig], names: tuple[str, str, str]) -> list[Copy]:
    """Tiles for a product, by what is expected of them."""
    configs = [c for c in configs if all(n in c.numbers for n in names)]
    if not configs:
        return []
    sizes = [tuple(max(c.numbers[n]) for n in names) for c in configs]
    present = present_product(subject, *max(sizes, key=lambda s: s[0] * s[1]))
    new = [s for s in schedules(subject, present) if not _tried(s, configs, names)]
    fitting = [_settings(s, names) for s in new]
    return [(configs[0], s) for s in fitting if _within(subject, s, configs)][:_ADDED]


def _wider(subject: RuleContext, configs: list[TuneConfig]) -> list[Copy]:
    """Return the largest tile twice as wide in each dimension."""
    sized = [c for c in configs if set(c.numbers) - OPTIONS]
    if not sized:
        return []
    most = _MOST_OF_PRODUCT if subject.analysis(TileDimensions).products else _MOST
    largest = max(sized, key=lambda c: math.prod(max(v) for n, v in c.numbers.items() if n not in OPTIONS))
    new = []
    for name, values in largest.numbers.items():
        settings = {name: 2 * max(values)}
        if name not in OPTIONS and most >= settings[name] >= _LEAST and _within(subject, settings, configs):
            new.append((largest, settings))
    return new[:_ADDED]


def _names(subject: RuleContext) -> tuple[str, str, str] | None:
    """Return the arguments that size rows, columns and inner dimension of the kernel's one product."""
    analysis = subject.analysis(TileDimensions)
    sizes = []
    for kind in ("rows", "columns", "inner"):
        names = set().union(*(getattr(p, kind).names for p in analysis.products)) & analysis.kernel.constexprs
        if len(names) != 1:
            return None
        sizes.append(names.pop())
    rows, columns, inner = sizes
    return (rows, columns, inner) if len({rows, columns, inner}) == 3 else None


def _tried(schedule: ProductSchedule, configs: list[TuneConfig], names: tuple[str, str, str]) -> bool:
    """Return whether a configuration has this tile: how it is pipelined is the other rules' part."""
    tile = (schedule.rows, schedule.columns, schedule.inner)
    return any(all(t in c.numbers[n] for t, n in zip(tile, names, strict=True)) for c in configs)


def _within(subject: RuleContext, settings: dict[str, int], configs: list[TuneConfig]) -> bool:
    """Return whether sizes stay within those that are tried already where accesses have no mask."""
    analysis = subject.analysis(TileDimensions)
    for name, size in settings.items():
        most = max((n for c in configs for n in c.numbers.get(name, ())), default=0)
        dimensions = analysis.of(name)
        if name not in OPTIONS and size > most and not (dimensions and all(d.guarded for d in dimensions)):
            return False
    return True


def _settings(schedule: ProductSchedule, names: tuple[str, str, str]) -> dict[str, int]:
    sizes = dict(zip(names, (schedule.rows, schedule.columns, schedule.inner), strict=True))
    return {**sizes, "num_warps": schedule.warps, "num_stages": schedule.stages}
