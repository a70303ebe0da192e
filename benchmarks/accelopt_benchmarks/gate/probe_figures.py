"""What each probe of the gate catches and costs, from the verdicts on a corpus: the figures of the page of probes."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from accelopt_benchmarks.checkout import ROOT
from accelopt_benchmarks.gate.detection import CorpusVerdict


def probe_figures(judged: Sequence[CorpusVerdict]) -> dict[str, Any]:
    """Return for each attack the probes that refuse it, the processor seconds of a check of an accepted control
    (median), and for each probe its share of one (mean).
    """
    controls = [verdict for verdict in judged if not verdict.attack and verdict.accepted]
    names = dict.fromkeys(name for verdict in controls for name in verdict.costs)
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "controls": len(controls),
        "seconds": round(median([verdict.busy_seconds for verdict in controls] or [0.0]), 3),
        "shares": {
            name: round(fmean(verdict.costs.get(name, 0.0) / verdict.busy_seconds for verdict in controls), 5)
            for name in names
        },
        "attacks": {verdict.case: verdict.probes for verdict in judged if verdict.attack},
    }
