"""What each probe catches and costs, from verdicts."""

from __future__ import annotations

from accelopt_benchmarks.gate.detection import CorpusVerdict
from accelopt_benchmarks.gate.probe_figures import probe_figures


def test_costs_are_those_of_accepted_controls() -> None:
    figures = probe_figures(
        [
            CorpusVerdict("a", "attack", False, True, probes=["large"], costs={"large": 9.0}),
            CorpusVerdict("a", "honest", True, True, busy_seconds=2.0, costs={"large": 0.5, "small": 1.0}),
            CorpusVerdict("b", "honest", True, True, busy_seconds=4.0, costs={"large": 0.5}),
            CorpusVerdict("c", "honest", False, False, busy_seconds=7.0, costs={"large": 5.0}),
        ]
    )
    assert figures["attacks"] == {"a": ["large"]}
    assert (figures["seconds"], figures["controls"]) == (3.0, 2)
    assert figures["shares"] == {"large": (0.25 + 0.125) / 2, "small": 0.25}
