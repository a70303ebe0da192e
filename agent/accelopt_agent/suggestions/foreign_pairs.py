"""Reads what other tools recorded as slow-fast pairs: AccelOpt's experience lists and FlashInfer-Bench's traces.

Nobody here has run them. So such a pair is an imported one whose times are not known: what the other tool claims stands
in its summary and counts for nothing, until its edit has passed the gate on a kernel here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_agent.syntax.kernel_change import kernel_changed
from accelopt_agent.transfer.edit_transfer import reproduces
from accelopt_agent.transfer.pair_edit import edit_id, read_edit
from accelopt_memory.features import kernel_features
from accelopt_memory.records import Pair
from accelopt_profiling.kernels import Kernel, find_kernels

#: A larger file is not read, nor a larger kernel; of a folder no more than so many files.
FILE_BYTES, SOURCE_BYTES, FILES = 64 << 20, 256 << 10, 50_000
#: A solution that was not so many times faster than another one teaches nothing (AccelOpt's own threshold).
LEAST_GAIN = 1.04
#: What AccelOpt's summarizer writes where two kernels differ in nothing that explains their times.
_NO_CHANGE = "No optimization found"


@dataclass(frozen=True)
class ForeignPairs:
    """The ``pairs`` that were read, and why others were ``left_out``, one reason each."""

    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _Change:
    name: str
    slow: str
    fast: str
    summary: str
    origin: str


class ForeignFormatError(ValueError):
    """A file or folder is neither of the forms that are read."""


def read_foreign(path: Path, target_of: Callable[[Kernel], str]) -> ForeignPairs:
    """Return the pairs of an AccelOpt experience list (a JSON file) or a FlashInfer-Bench dataset (a folder with
    ``solutions`` and ``traces``). ``target_of`` names the target of a kernel, which neither form does as we do.

    Raises:
        ForeignFormatError: it is neither.
        OSError: it cannot be read.
    """
    changes = _of_traces(path) if path.is_dir() else _of_experience_list(path)
    pairs: dict[str, Pair] = {}
    left_out = []
    for change in changes:
        try:
            pair = _pair(change, target_of)
        except (ValueError, SyntaxError, RecursionError) as error:
            left_out.append(f"{change.name}: {error}")
        else:
            pairs[pair.id] = pair
    return ForeignPairs(tuple(pairs.values()), tuple(left_out))


def _pair(change: _Change, target_of: Callable[[Kernel], str]) -> Pair:
    if max(len(change.slow), len(change.fast)) > SOURCE_BYTES:
        raise ValueError(f"a source over {SOURCE_BYTES >> 10} KiB")
    fast_text = _with_kernel_name_of(change.slow, change.fast)
    slow, fast = _changed_kernel(change.slow, fast_text)
    edit = edit_id(read_edit(change.slow, fast_text))
    return Pair(
        kernel=slow.name, dialect=slow.dialect, target=target_of(slow), slow_text=change.slow,
        fast_text=fast_text, slow_hash=slow.content_hash, fast_hash=fast.content_hash, origin=change.origin,
        summary=change.summary, features=kernel_features(change.slow, slow.name), steps=(change.origin,), edit=edit,
        example=not reproduces(change.slow, fast_text, slow.name), imported=True,
    )  # fmt: skip


def _kernels(text: str) -> dict[str, Kernel]:
    return {k.name: k for k in find_kernels(text).launched}


def _with_kernel_name_of(slow: str, fast: str) -> str:
    """Return the fast text with its one kernel called as the one of the slow text: a rewrite often renames it."""
    before, after = list(_kernels(slow)), list(_kernels(fast))
    if len(before) != 1 or len(after) != 1 or re.search(rf"\b{before[0]}\b", fast):
        return fast
    return re.sub(rf"\b{after[0]}\b", before[0], fast)


def _changed_kernel(slow: str, fast: str) -> tuple[Kernel, Kernel]:
    """Return the one kernel that both texts have and that differs.

    Raises ValueError: there is none, or several.
    """
    before, after = _kernels(slow), _kernels(fast)
    both = [name for name in before if name in after and kernel_changed(slow, fast, name)]
    if len(both) != 1:
        raise ValueError(
            "no kernel that both versions have differs" if not both else "several kernels differ"
        )
    return before[both[0]], after[both[0]]


def _of_experience_list(path: Path) -> Iterator[_Change]:
    data = _json(path)
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ForeignFormatError(f"{path} is no list of experience: a JSON list of objects")
    for number, item in enumerate(data, 1):
        slow, fast = (_text(item, name) for name in ("slow_kernel", "fast_kernel"))
        if not slow or not fast:
            raise ForeignFormatError(f"{path}, item {number}: it has no slow_kernel and fast_kernel")
        title = _text(item, "title").strip("* \n")
        if title == _NO_CHANGE:
            continue
        title = title or "a change that AccelOpt's summarizer gave no name"
        gain = item.get("speedup")
        claim = f" (AccelOpt says {gain:.2f}x)" if isinstance(gain, (int, float)) else ""
        yield _Change(f"item {number}", slow, fast=fast, summary=f"{title}{claim}", origin="foreign:accelopt")


def _of_traces(folder: Path) -> Iterator[_Change]:
    """Yield, for each definition and device, the slowest solution that passed with every clearly faster one."""
    solutions = {}
    for path in _files(folder / "solutions", "*.json"):
        data = _json(path)
        if isinstance(data, dict) and _source(data):
            solutions[_text(data, "name")] = data
    times: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for path in _files(folder / "traces", "*.jsonl"):
        for trace in _json_lines(path):
            timing = _timed(trace)
            if timing is not None and timing[0] in solutions:
                solution, device, workload, milliseconds = timing
                place = _text(trace, "definition"), device
                times.setdefault(place, {}).setdefault(solution, {})[workload] = milliseconds
    if not solutions or not times:
        raise ForeignFormatError(f"{folder} has no solutions in Python with traces that passed")
    for (definition, device), by_solution in sorted(times.items()):
        yield from _gains(definition, device, by_solution, solutions)


def _gains(
    definition: str, device: str, times: dict[str, dict[str, float]], solutions: dict[str, dict[str, Any]]
) -> Iterator[_Change]:
    for fast_name, fast in sorted(times.items()):
        compared = []
        for slow_name, slow in times.items():
            shared = slow.keys() & fast.keys()
            if slow_name != fast_name and shared:
                gain = sum(slow[w] for w in shared) / sum(fast[w] for w in shared)
                compared.append((gain, slow_name))
        gain, slow_name = max(compared, default=(0.0, ""))
        if gain > LEAST_GAIN:
            summary = (
                f"{definition}: {fast_name} in the place of {slow_name} (traces on {device} say {gain:.2f}x)"
            )
            yield _Change(
                fast_name,
                _source(solutions[slow_name]),
                fast=_source(solutions[fast_name]),
                summary=summary,
                origin="foreign:flashinfer",
            )


def _timed(trace: Any) -> tuple[str, str, str, float] | None:
    """Return solution, device, workload and milliseconds of a trace that passed."""
    evaluation = trace.get("evaluation") if isinstance(trace, dict) else None
    if not isinstance(evaluation, dict) or evaluation.get("status") != "PASSED":
        return None
    performance, environment = evaluation.get("performance"), evaluation.get("environment")
    milliseconds = performance.get("latency_ms") if isinstance(performance, dict) else None
    device = _text(environment, "hardware") if isinstance(environment, dict) else ""
    if not isinstance(milliseconds, (int, float)) or not milliseconds > 0:
        return None
    workload = trace.get("workload")
    uuid = _text(workload, "uuid") if isinstance(workload, dict) else ""
    return _text(trace, "solution"), device, uuid, float(milliseconds)


def _source(solution: dict[str, Any]) -> str:
    """Return the one source in Python of a solution, "" where it has several or is written in another language."""
    spec, sources = solution.get("spec"), solution.get("sources")
    language = _text(spec, "language") if isinstance(spec, dict) else ""
    if language not in ("triton", "python") or not isinstance(sources, list) or len(sources) != 1:
        return ""
    return _text(sources[0], "content") if isinstance(sources[0], dict) else ""


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _files(folder: Path, pattern: str) -> Iterable[Path]:
    return sorted(p for p in folder.rglob(pattern) if p.is_file() and not p.is_symlink())[:FILES]


def _json(path: Path) -> Any:
    try:
        return json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise ForeignFormatError(f"{path} is not JSON ({type(error).__name__})") from None


def _json_lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(_read(path).splitlines(), 1):
        try:
            yield json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            raise ForeignFormatError(f"{path}, line {number}: not JSON") from None


def _read(path: Path) -> str:
    if path.stat().st_size > FILE_BYTES:
        raise ForeignFormatError(f"{path} is larger than {FILE_BYTES >> 20} MiB")
    return path.read_text("utf-8", "replace")
