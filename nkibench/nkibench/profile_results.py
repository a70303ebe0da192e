"""Reads and writes AccelOpt's ``profile_results.csv``: a row per kernel, values and profile as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nkibench.case import BenchmarkCase
from nkibench.dataset import DatasetError

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
        subject.name, subject.values, subject.case_id, str(subject.reference), str(subject.kernel),
        subject.case_name, subject.service_name, profile,
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


def read_profiles(path: Path) -> list[ProfileRow]:
    """Return the rows of a file that AccelOpt or ``write_profiles`` wrote; ``candidates.csv``, without
    profiles, too.

    Raises:
        DatasetError: it cannot be read; the message names the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            missing = [c for c in COLUMNS[:-1] if c not in (reader.fieldnames or ())]
            if missing:
                raise DatasetError(f"{path}:1: the column {missing[0]!r} is missing.")
            return [_row(path, reader.line_num, data) for data in reader]
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 text (byte {error.start}).") from None
    except csv.Error as error:
        raise DatasetError(f"{path}:{reader.line_num}: {error}; is the file cut off?") from None


def _row(path: Path, line: int, data: dict[str, Any]) -> ProfileRow:
    if None in data or any(data[c] is None for c in COLUMNS[:-1]):
        raise DatasetError(f"{path}:{line}: the row has another number of columns; is the file cut off?")
    values = _json(path, line, "values", data["values"])
    profile = _json(path, line, "profile", data.get("profile") or "{}")
    return ProfileRow(
        data["problem"], values, data["case_id"], data["task"], data["kernel"], data["case_name"],
        data["service_name"], profile,
    )  # fmt: skip


def _json(path: Path, line: int, column: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DatasetError(f"{path}:{line}: {column} is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise DatasetError(f"{path}:{line}: {column} is no JSON object.")
    return value
