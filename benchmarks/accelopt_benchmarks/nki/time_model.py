"""Compares the NKI time model's estimates with times that others measured and published.

Three matrix products and six additions for trn2, and six additions for trn1, written here after their published
description; and, read from checkouts that are given, the fourteen NKIBench baselines of zhang677/AccelOpt on trn1, and
versions of one kernel (AWS's fused mamba on trn1, a convolution, an attention and an MLP on trn2). Their published
times stand in ``published.json``. The constants of the model are the same for all kernels; those of trn1 that were
chosen by looking at these times are varied between their bounds, each kernel left out in turn, and the error on the one
left out is told. What no constant was chosen by is named held out.

The kernels are only traced (no values are computed), each in a child process.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import resources
from itertools import pairwise
from math import log
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.nki.data.instruction import Trace
from accelopt_profiling.nki.time_model.hardware import Hardware, hardware
from accelopt_profiling.targets.target import load_target
from nkibench.metrics import spearman

#: Constants of trn1's file that were chosen, or confirmed, by looking at the published times: group and key there, and
#: the field of ``Hardware`` or ``Compiler``.
CALIBRATED = (
    ("dma", "gbps", "dma_gbps"),
    ("dma", "descriptor_ns", "descriptor_ns"),
    ("dma", "latency_ns", "dma_latency_ns"),
    ("cost", "fp32_overhead_cycles", "fp32_overhead"),
    ("cost", "vector_result_ns", "vector_result_ns"),
    ("cost", "vector_overhead_cycles", "vector_overhead"),
    ("cost", "scalar_overhead_cycles", "scalar_overhead"),
    ("cost", "reciprocal_cycles_per_element", "reciprocal_cycles"),
    ("cost", "semaphore_ns", "semaphore_ns"),
    ("compiler", "buffers", "buffers"),
    ("compiler", "reserve_bytes", "reserve_bytes"),
    ("compiler", "lookahead", "lookahead"),
)
#: The additions in ``published.json``, by target: in today's dialect on trn2, in Beta 1's on trn1.
ADDITIONS = {"trn1": "trn1 additions", "trn2": "trn2 additions"}
WORKERS = 2
SUMMARY = "summary.json"


@dataclasses.dataclass(frozen=True)
class PublishedComparison:
    """One kernel: what was published and what the model says, in microseconds; ``varied`` with other constants."""

    name: str
    published_us: float
    us: float
    low_us: float
    high_us: float
    bound: str
    varied: dict[str, float]

    @property
    def error(self) -> float:
        """Relative: 0.1 is ten percent too slow."""
        return self.us / self.published_us - 1


async def time_model(data: Sequence[Path]) -> list[GoalResult]:
    """Return the rows of ``accelopt bench self``.

    Those of the baselines if a checkout of AccelOpt is among ``data``.
    """
    rows = variants(await _gather([partial(judge_variant, name) for name in published("trn2")]))
    for target, kind in ADDITIONS.items():
        rows += additions(
            target, await _gather([partial(judge_addition, target, name) for name in published(kind)])
        )
    for kind, group in published_versions().items():
        roots = [root for root in data if all((root / file).is_file() for file in group["files"].values())]
        if roots:
            tasks = [partial(judge_version, kind, name, str(roots[0])) for name in group["kernels"]]
            rows += versions(kind, await _gather(tasks))
    checkouts = [
        root for folder in data for root in (folder / "NKIBench", folder) if (root / SUMMARY).is_file()
    ]
    if not checkouts:
        why = "give a checkout of zhang677/AccelOpt with --data"
        return [
            *rows,
            not_measured(
                "NKI time model, trn1: 14 NKIBench baselines", "see docs/explanation/nki-time-model.md", why
            ),
        ]
    return rows + ranking(
        await _gather([partial(judge_baseline, *files) for files in baselines(checkouts[0])])
    )


async def _gather(tasks: Sequence[Callable[[], PublishedComparison]]) -> list[PublishedComparison]:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(WORKERS) as pool:
        return list(await asyncio.gather(*(loop.run_in_executor(pool, task) for task in tasks)))


def published(target: str) -> dict[str, float]:
    """Return the published times of the kernels for ``target``, in microseconds."""
    text = (resources.files(__package__) / "published.json").read_text(encoding="utf-8")
    per_unit = 1000.0 if target == "trn1" else 1.0
    return {name: time * per_unit for name, time in json.loads(text)[target]["kernels"].items()}


def published_versions() -> dict[str, dict[str, Any]]:
    """Return the kernels of which several versions, or several uses, were measured: where they are from, and their
    times in microseconds."""
    text = (resources.files(__package__) / "published.json").read_text(encoding="utf-8")
    versions: dict[str, dict[str, Any]] = json.loads(text)["versions"]
    return versions


def baselines(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the name, task file and kernel file of each NKIBench baseline with a published time."""
    summary = json.loads((root / SUMMARY).read_text(encoding="utf-8"))
    for name in published("trn1"):
        for case in summary[name]["cases"].values():
            files = case["impls"][0]
            yield name, str(root / files["task"]), str(root / files["kernel"])


# In a child process


def judge_variant(name: str) -> PublishedComparison:
    """Trace one of the three matrix products and estimate it on trn2."""
    import ml_dtypes
    import numpy as np

    from accelopt_profiling.nki.install import emulated

    machine = hardware("trn2")
    source = Path(__file__).with_name("matmul_variants.py")
    operand = np.broadcast_to(np.zeros((), ml_dtypes.bfloat16), (4096, 4096))
    with emulated("trace", limits=machine.limits) as emulation:
        getattr(imported(source), name)(operand, operand)
    return _judge(name, published("trn2")[name], emulation.machines[0].trace, machine, vary=False)


def judge_addition(target: str, name: str) -> PublishedComparison:
    """Trace one of the additions and estimate it on ``target``."""
    import numpy as np

    from accelopt_profiling.nki.install import emulated

    machine = hardware(target)
    source = "vector_additions.py" if target == "trn2" else "vector_additions_beta1.py"
    form, size = name.split()
    count = int(size)
    shape = (25600, 1) if form == "chunks" else (128, 2000 if count >= 1000 else 200)
    operand = np.broadcast_to(np.zeros((), np.float32), shape)
    with emulated("trace", limits=machine.limits) as emulation:
        getattr(imported(Path(__file__).with_name(source)), form)(operand, operand, count)
    trace = emulation.machines[0].trace
    return _judge(name, published(ADDITIONS[target])[name], trace, machine, vary=False)


def judge_baseline(name: str, task: str, kernel: str) -> PublishedComparison:
    """Trace one baseline of NKIBench and estimate it on trn1, also with each constant at its bounds."""
    from accelopt_profiling.nki.install import emulated

    machine = hardware("trn1")
    with emulated("trace", limits=machine.limits) as emulation:
        module = imported(Path(task))
        with patch("numpy.random.normal", zeros):
            inputs = module.transform_to_nki_inputs(module.get_inputs())
        imported(Path(kernel)).kernel(*inputs)
    return _judge(name, published("trn1")[name], emulation.machines[0].trace, machine, vary=True)


def judge_version(kind: str, name: str, root: str) -> PublishedComparison:
    """Trace one version of a kernel from a checkout and estimate it on the target that it was measured on."""
    from accelopt_profiling.nki.install import emulated

    group = published_versions()[kind]
    machine = hardware(group["target"])
    function, *sizes = name.split()
    with emulated("trace", limits=machine.limits) as emulation:
        kernel = getattr(imported(Path(root) / group["files"][function]), function)
        kernel(*_INPUTS[kind](*sizes))
    return _judge(name, group["kernels"][name], emulation.machines[0].trace, machine, vary=False)


def _scan(steps: str, channels: str = "4096") -> list[Any]:
    import numpy as np

    shapes = [(1, int(channels), int(steps))] * 2 + [(int(channels), 16)] + [(1, 16, int(steps))] * 2
    return [np.broadcast_to(np.zeros((), np.float32), shape) for shape in shapes]


def _convolution(dtype: str, pool_size: str) -> list[Any]:
    import numpy as np

    shapes = [(1, 256, 224, 224), (256, 256, 3, 3), (256,)]
    return [*(np.broadcast_to(np.zeros((), dtype), shape) for shape in shapes), int(pool_size)]


def _attention(dtype: str, steps: str) -> list[Any]:
    return _operands(dtype, *[(128, int(steps))] * 3)


def _mlp(dtype: str, *sizes: str) -> list[Any]:
    m, k, n = map(int, sizes)
    return _operands(dtype, (k, m), (k, n), (1, n))


def _operands(dtype: str, *shapes: tuple[int, int]) -> list[Any]:
    import ml_dtypes
    import numpy as np

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return [np.broadcast_to(np.zeros((), kind), shape) for shape in shapes]


#: The inputs of the kernels of which several versions were measured, from the sizes in their names.
_INPUTS: dict[str, Callable[..., list[Any]]] = {
    "fused mamba": _scan, "convolution": _convolution, "attention": _attention, "fused MLP": _mlp,
}  # fmt: skip


def zeros(loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
    """Instead of random numbers, which a trace does not need: zeros that take no memory."""
    import numpy as np

    return np.broadcast_to(np.zeros(()), () if size is None else size)


def imported(path: Path) -> ModuleType:
    """Return the module that a file holds."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _judge(
    name: str, published_us: float, trace: Trace, machine: Hardware, vary: bool
) -> PublishedComparison:
    from accelopt_profiling.nki.time_model.estimate import estimate
    from accelopt_profiling.nki.time_model.schedule import prepare, schedule

    answer = estimate(trace, machine)
    varied = {}
    if vary:
        program = prepare(trace.instructions, machine)
        for label, other in settings(machine):
            runs = program if other.compiler == machine.compiler else prepare(trace.instructions, other)
            varied[label] = (schedule(runs, other).total + other.launch_ns) / 1000
    return PublishedComparison(
        name,
        published_us,
        us=answer.us,
        low_us=answer.low_us,
        high_us=answer.high_us,
        bound=answer.bound,
        varied=varied,
    )


def settings(machine: Hardware) -> Iterator[tuple[str, Hardware]]:
    """Yield the hardware as it is, and with one constant at the lower or the upper bound that its file
    gives."""
    data = load_target(machine.name).data
    yield "as is", machine
    for group, key, field in CALIBRATED:
        for bound in ("low", "high"):
            value = data[group][key][bound]
            if group == "compiler":
                compiler = dataclasses.replace(machine.compiler, **{field: value})
                yield f"{key} {value:g}", dataclasses.replace(machine, compiler=compiler)
            else:
                yield f"{key} {value:g}", dataclasses.replace(machine, **{field: value})


# Rows


def variants(comparisons: Sequence[PublishedComparison]) -> list[GoalResult]:
    """Return the three matrix products: each within 20 %, and in the published order."""
    rows = [_row(one, "trn2", "within 20 %", abs(one.error) <= 0.2) for one in comparisons]
    right = _order([j.us for j in comparisons]) == _order([j.published_us for j in comparisons])
    rows.append(
        GoalResult(
            "NKI time model, trn2: order of the three products", "as published", float(right), "", right
        )
    )
    return rows


def additions(target: str, comparisons: Sequence[PublishedComparison]) -> list[GoalResult]:
    """Return the additions on ``target``: each within 20 %; those that no constant was chosen by are named held out."""
    text = (resources.files(__package__) / "published.json").read_text(encoding="utf-8")
    chosen = json.loads(text)[ADDITIONS[target]]["calibrated"]
    rows = []
    for one in comparisons:
        title = f"addition, {one.name}" + ("" if one.name in chosen else " (held out)")
        row = _row(dataclasses.replace(one, name=title), target, "within 20 %", abs(one.error) <= 0.2)
        rows.append(row)
    return rows


def versions(kind: str, comparisons: Sequence[PublishedComparison]) -> list[GoalResult]:
    """Return the versions of one kernel: each within 20 %, and each with how much faster it is than the one before, if
    that has the same sizes or is the same function."""
    group, rows = published_versions()[kind], []
    for one in comparisons:
        name = f"{kind}, {one.name}" + ("" if one.name in group["calibrated"] else " (held out)")
        row = _row(dataclasses.replace(one, name=name), group["target"], "within 20 %", abs(one.error) <= 0.2)
        rows.append(row)
    for slow, fast in pairwise(comparisons):
        alike = any(a == b for a, b in zip(slow.name.split(" ", 1), fast.name.split(" ", 1), strict=True))
        if alike and slow.published_us > 1.1 * fast.published_us:
            right, ours = slow.published_us / fast.published_us, slow.us / fast.us
            title = f"NKI time model, {group['target']}: {kind}, {slow.name} over {fast.name}"
            met = abs(ours / right - 1) <= 0.2
            rows.append(GoalResult(title, "within 20 %", ours, "x", met, f"published {right:.2f}x"))
    return rows


def ranking(comparisons: Sequence[PublishedComparison]) -> list[GoalResult]:
    """Return the baselines one by one, and how well they are ranked and hit."""
    rows = [_row(one, "trn1", "within 2x", 0.5 <= one.us / one.published_us <= 2) for one in comparisons]
    rank = spearman([j.us for j in comparisons], [j.published_us for j in comparisons])
    errors = [abs(j.error) for j in comparisons]
    worst = max(comparisons, key=lambda j: abs(log(j.us / j.published_us)))
    factor = max(worst.us / worst.published_us, worst.published_us / worst.us)
    title = f"NKI time model, trn1: {len(comparisons)} NKIBench baselines"
    median = 100 * statistics.median(errors)
    rows += [
        GoalResult(f"{title}, rank correlation", ">= 0.97", rank, "", rank >= 0.97, "Spearman"),
        GoalResult(f"{title}, median error", "<= 15 %", median, "%", median <= 15),
        GoalResult(f"{title}, worst", "<= 2x", factor, "x", factor <= 2, worst.name),
        _left_out(title, comparisons),
    ]
    return rows


def _row(one: PublishedComparison, target: str, goal: str, met: bool) -> GoalResult:
    detail = (
        f"published {_time(one.published_us)}, estimated {_time(one.us)} ({_time(one.low_us)} to "
        f"{_time(one.high_us)}), {one.bound} bound"
    )
    return GoalResult(f"NKI time model, {target}: {one.name}", goal, 100 * one.error, "%", met, detail)


def _left_out(title: str, comparisons: Sequence[PublishedComparison]) -> GoalResult:
    errors, chosen = leave_one_out(comparisons)
    others = sorted(set(chosen) - {"as is"})
    times = f"{chosen.count('as is')} of {len(comparisons)} times"
    detail = f"worst {max(errors):.0%}; chosen {times}: the constants as they are"
    if others:
        detail += "; else " + ", ".join(others)
    median = 100 * statistics.median(errors)
    return GoalResult(f"{title}, median error, each left out", "<= 15 %", median, "%", median <= 15, detail)


def leave_one_out(comparisons: Sequence[PublishedComparison]) -> tuple[list[float], list[str]]:
    """Return for each kernel the setting that is best for all others (least mean absolute log ratio), and the
    absolute relative error that the kernel has with it."""
    errors, chosen = [], []
    for one in comparisons:
        rest = [other for other in comparisons if other is not one]

        def badness(label: str, rest: Sequence[PublishedComparison] = rest) -> float:
            return statistics.mean(abs(log(o.varied[label] / o.published_us)) for o in rest)

        best = min(one.varied, key=badness)
        chosen.append(best)
        errors.append(abs(one.varied[best] / one.published_us - 1))
    return errors, chosen


def _order(values: Sequence[float]) -> list[int]:
    return sorted(range(len(values)), key=values.__getitem__)


def _time(us: float) -> str:
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} us"
