"""Runs a kernel file once under Nsight Compute and reads its table."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Metric by what it tells; bytes and counts as they are (``--print-units base``).
METRICS = {
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "sectors": "lts__t_sectors_srcunit_tex.sum",
    "registers": "launch__registers_per_thread",
}


@dataclass(frozen=True)
class Counted:
    """What ncu counted of one launch of ``kernel``; metrics that it did not tell are absent."""

    kernel: str
    values: dict[str, float] = field(default_factory=dict)

    @property
    def dram_bytes(self) -> float | None:
        if "read" not in self.values or "written" not in self.values:
            return None
        return self.values["read"] + self.values["written"]


class NcuMissingError(Exception):
    """Nsight Compute is not there, or could not count; the message has its last words."""


def count(
    kernels: Sequence[str], command: Sequence[str], environment: Mapping[str, str], seconds: float = 120.0
) -> list[Counted]:
    """Run ``command`` under ncu and count the launches of ``kernels``. The clocks stay as they are.

    Raises:
        NcuMissingError
    """
    elsewhere = sorted(map(str, Path("/").glob("opt/nvidia/nsight-compute/*/ncu")))
    ncu = shutil.which("ncu") or next(iter(elsewhere), None)
    if ncu is None:
        raise NcuMissingError("ncu is not installed")
    asked = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--target-processes",
             "all", "--kernel-name", f"regex:^({'|'.join(kernels)})"]  # fmt: skip
    try:
        done = subprocess.run(
            [*asked, "--metrics", ",".join(METRICS.values()), *command],
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NcuMissingError(f"ncu: {error}") from None
    found = parse(done.stdout)
    if not found:
        last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-2:]
        raise NcuMissingError(f"ncu counted nothing (exit {done.returncode}): {' / '.join(last)}"[:300])
    return found


def parse(text: str) -> list[Counted]:
    """Return the rows of ``ncu --csv --page raw``: a header, a line of units, a line per launch; other words
    around."""
    lines = text.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    found = []
    table = "\n".join(line for line in lines[begin:] if line.startswith('"'))
    for row in csv.DictReader(io.StringIO(table)):
        if not (row.get("ID") or "").isdigit():
            continue  # the line of units
        values = {}
        for name, metric in METRICS.items():
            try:
                values[name] = float((row.get(metric) or "").replace(",", ""))
            except ValueError:
                continue
        found.append(Counted(str(row.get("Kernel Name", "")), values))
    return found
