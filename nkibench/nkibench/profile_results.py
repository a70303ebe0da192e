"""Writes AccelOpt's ``profile_results.csv``: a row per kernel, values and profile as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nkibench.case import BenchmarkCase

COLUMNS = ("problem", "values", "case_id", "task", "kernel", "case_name", "service_name", "profile")


@dataclass(frozen=True)
class ProfileRow:
    """One kernel's row; ``profile`` is the metadata of ``NKIKernel``."""

    problem: str
    values: dict[str, int]
    case_id: str
    task: str
    kernel: str
    case_name: str
    service_name: str
    profile: dict[str, Any] = field(default_factory=dict)


def row_of(subject: BenchmarkCase, profile: dict[str, Any]) -> ProfileRow:
    return ProfileRow(
        subject.name, subject.values, case_id=subject.case_id, task=str(subject.reference), kernel=str(subject.kernel),
        case_name=subject.case_name, service_name=subject.service_name, profile=profile,
    )  # fmt: skip


def write_profiles(path: Path, rows: Sequence[ProfileRow]) -> None:
    """Write the profiles. Raises OSError when it cannot be written."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {**vars(row), "values": json.dumps(row.values), "profile": json.dumps(row.profile)}
            )
