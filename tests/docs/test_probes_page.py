"""The page of the gate's probes follows from the list of them and from the figures that a benchmark wrote."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

from accelopt_profiling.gate.probes.registry import PROBES
from accelopt_profiling.gate.probes.text import TEXT_PROBES

ROOT = Path(__file__).resolve().parents[2]
PAGE = runpy.run_path(str(ROOT / "scripts/reference.py"))
NAMES = {*(probe.name for probe in PROBES), *TEXT_PROBES}


def test_each_probe_has_a_row_and_each_attack_refused_by_one_alone_is_named() -> None:
    text = PAGE["PAGES"]["reference/probes"]()
    rows = {line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")}
    assert rows == {"probe", *NAMES}
    attacks = json.loads(PAGE["PROBE_FIGURES"].read_text(encoding="utf-8"))["attacks"]
    for case, probes in attacks.items():
        assert set(probes) <= NAMES, case
        assert (f"`{case}`" in text) is (len(probes) == 1)
