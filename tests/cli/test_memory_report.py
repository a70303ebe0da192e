from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.command import Command

from accelopt_memory.features import KernelFeatures
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome, learning_curve
from accelopt_memory.records import Pair


def _outcome(task: int, number: int, ratio: float) -> Outcome:
    return Outcome(f"rule:r{number}", f"t{task}", None, "triton", "h100", math.log(ratio), f"{task} {number}")


def test_the_curve_tells_the_tries_that_each_kernel_needed() -> None:
    first = [_outcome(0, k, 1.0) for k in range(4)] + [_outcome(0, 9, 0.5)]
    second = [_outcome(1, k, 1.0) for k in range(2)]
    third = [_outcome(2, 0, 0.8)]
    curve = learning_curve([*first, *second, *third])
    assert [(one.tries, one.first_gain) for one in curve] == [(5, 5), (2, None), (1, 1)]
    assert [one.mean for one in curve] == [5, 3.5, pytest.approx(8 / 3)]


def test_the_page_is_one_file_in_which_nothing_is_markup(
    accelopt: Command, home: Path, tmp_path: Path
) -> None:
    with Memory.open(home / "memory.db") as memory:
        features = KernelFeatures("triton", {"tl.load": 1})
        memory.add_pair(
            Pair(
                "<b>k", "triton", "h100", "a", "b", "s", "f", "person", "<script>x</script> & more", features
            )
        )
        for task in range(3):
            memory.outcomes.add(_outcome(task, 0, 0.5))
    target = tmp_path / "learned.html"
    done = accelopt("memory", "report", "-o", str(target), "--json")
    assert done.object == {"path": str(target), "pairs": 1, "kernels": 3}
    text = target.read_text()
    assert "<script>" not in text
    assert "&lt;b&gt;k on h100" in text
    picture = "<svg" + text.partition("<svg")[2].partition("</svg>")[0] + "</svg>"
    assert len(ElementTree.fromstring(picture).findall("circle")) == 3
    assert accelopt("memory", "report", "-o", str(tmp_path / "no" / "x.html")).code == 2
