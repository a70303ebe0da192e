"""The published figures: complete, with sources, as times that the device can reach; and the rank correlation."""

import pytest

from accelopt_benchmarks.published.comparison import PublishedRow, _microseconds, published, summary
from accelopt_profiling.targets import load_gpu


@pytest.mark.parametrize("group", published(), ids=lambda group: group["name"])
def test_each_figure_names_its_source_and_is_a_time_that_the_device_can_reach(group):
    assert "https://" in group["source"]
    assert group["set"] in ("calibration", "held out")
    gpu = load_gpu(group["target"])
    for row in group["rows"]:
        assert "tile" in row or group["tiles"]
        us, shape = _microseconds(group, row), row["shape"]
        if group["kernel"] == "product":
            flops = 2 * shape["m"] * shape["n"] * shape["k"]
            assert flops / (us * 1e-6) < gpu["peak.fp16" if shape["dtype"] != "float32" else "peak.fp32"]
        if group["kernel"] == "layer norm":
            assert 4 * shape["rows"] * shape["columns"] / (us * 1e-6) < gpu["dram_bandwidth"]


def test_the_summary_keeps_what_was_calibrated_on_apart():
    def row(held_out, us):
        return PublishedRow("g", held_out, "h100", f"n={us}", "1x1", us, 1.5 * us, us, 2 * us, "memory")

    values = {r.what: r.value for r in summary([row(True, 1.0), row(False, 2.0), row(True, 3.0)])}
    assert values["figures not used for calibration inside the interval"] == 100
    assert values["figures used for calibration: median of estimate / published"] == pytest.approx(1.5)
