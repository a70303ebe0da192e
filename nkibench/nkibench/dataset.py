"""Reads a checkout of NKIBench: ``summary.json``, references and kernels in AccelOpt's layout.

``summary.json`` maps operators to cases to implementations::

    {"silu": {"seed": "./seeds/silu.yaml",
              "cases": {"0": {"values": {"M": 4096, "N": 7168},
                              "impls": [{"task": "./reference/...py", "kernel": "./kernels/...py"}]}}}}

Nothing is imported or run here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accelopt_profiling.problems.catalogue import LAYOUTS
from accelopt_profiling.problems.discovery.problem_files import recognise_python
from accelopt_profiling.problems.layouts import nkibench
from accelopt_profiling.source_text import UnreadableFileError, read_text, try_parse
from nkibench.case import BenchmarkCase, BenchmarkCases, Fault, published_task

SUMMARY = "summary.json"


class DatasetError(Exception):
    """Nothing of the data set can be run. The message names the file and the line."""


def find_dataset(folder: Path) -> Path:
    """Return the folder with ``summary.json``: the given one, or ``NKIBench`` in it (a checkout of AccelOpt).

    Raises:
        DatasetError: neither has one, or it may not be looked into.
    """
    for candidate in (folder, folder / "NKIBench"):
        if os.path.lexists(candidate / SUMMARY):
            return candidate.resolve()
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        raise DatasetError(f"{folder} may not be read; give yourself read permission.")
    raise DatasetError(
        f"{folder} has no {SUMMARY}, nor has its folder NKIBench; name the NKIBench folder of a checkout."
    )


def read_dataset(folder: Path, names: Sequence[str] = ()) -> BenchmarkCases:
    """Return the kernels of a data set, of the named operators or of all; what is wrong with one leaves the
    others.

    Raises:
        DatasetError: the summary cannot be read, or a named operator is not in it.
    """
    root = find_dataset(folder)
    summary = root / SUMMARY
    data = _read_summary(summary)
    unknown = [name for name in names if name not in data]
    if unknown:
        raise DatasetError(f"{summary} has no operator {unknown[0]!r}; it has {', '.join(data)}.")
    cases = BenchmarkCases()
    for name in names or data:
        for one in _implementations(root, name, data[name]):
            if isinstance(one, Fault):
                cases.faults.append(one)
            else:
                cases.ready.append(one)
    return cases


def _read_summary(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path)
    except UnreadableFileError as error:
        raise DatasetError(f"{path} {error.why}.") from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        end = len(text.rstrip()) <= error.pos or error.msg.startswith("Unterminated string")
        cut = "the file ends too early; fetch it again" if end else error.msg
        raise DatasetError(f"{path}:{error.lineno}: not valid JSON: {cut}.") from None
    except RecursionError:
        raise DatasetError(f"{path}: nested too deeply to be a summary.") from None
    if not isinstance(data, dict):
        raise DatasetError(f"{path}:1: a summary is an object of operators, not a {type(data).__name__}.")
    return data


def _implementations(root: Path, name: str, operator: Any) -> Iterator[BenchmarkCase | Fault]:
    summary = root / SUMMARY
    cases = operator.get("cases") if isinstance(operator, dict) else None
    if not isinstance(cases, dict) or not cases:
        yield Fault(name, summary, f'the operator {name!r} has no "cases".')
        return
    for case_id, case in cases.items():
        values = case.get("values") if isinstance(case, dict) else None
        if not isinstance(values, dict) or not all(type(v) is int and v > 0 for v in values.values()):
            yield Fault(
                name, summary, f'the case {case_id!r} of {name!r} needs "values" that are whole numbers.'
            )
            continue
        items = case.get("impls")
        if not isinstance(items, list) or not items:
            yield Fault(name, summary, f'the case {case_id!r} of {name!r} has no "impls".')
            continue
        for item in items:
            yield _implementation(root, name, case_id=case_id, values=values, item=item)


def _implementation(
    root: Path, name: str, case_id: str, values: dict[str, int], item: Any
) -> BenchmarkCase | Fault:
    paths: list[Path] = []
    for key in ("task", "kernel"):
        entry = item.get(key) if isinstance(item, dict) else None
        if not isinstance(entry, str):
            return Fault(
                name, root / SUMMARY, f'an implementation of {name!r}, case {case_id!r}, names no "{key}".'
            )
        path = Path(os.path.normpath(root / entry))
        if not path.is_relative_to(root):
            return Fault(name, root / SUMMARY, f"{entry!r} of {name!r} lies outside the data set.")
        paths.append(path)
    reference, kernel = paths
    for path in paths:
        try:
            text = read_text(path)
        except UnreadableFileError as error:
            return Fault(name, path, f"{error.why}; fetch the data set again or correct {SUMMARY}.")
        if path == reference:
            layout = recognise_python(try_parse(text), LAYOUTS)
            if layout.kind != nkibench.LAYOUT.kind:
                return Fault(
                    name, path, layout.fault or "it is no reference in NKIBench's layout.", layout.line
                )
    return BenchmarkCase(
        name,
        str(case_id),
        values=values,
        kernel=kernel,
        reference=reference,
        root=root,
        task=published_task(name),
    )
