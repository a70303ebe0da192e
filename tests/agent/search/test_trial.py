"""A step that takes back what a step before did is no way forward."""

from __future__ import annotations

import pytest
from support.toy_search import TEXT

from accelopt_agent.search.node import Node
from accelopt_agent.search.trial import goes_back
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement

LAUNCH = "\nkernel[grid](x, BLOCK=64, num_warps=4)\n"


def node(text: str, parent: Node | None = None) -> Node:
    kernel = find_kernels(TEXT).kernels[0]
    return Node(
        text, kernel, KernelMeasurement(kernel.name, kernel.line, kernel.dialect, "trn1"), parent=parent
    )


@pytest.mark.parametrize(
    ("second", "third", "back"),
    [
        ({"BLOCK=64": "BLOCK=128"}, {"BLOCK=128": "BLOCK=64"}, True),
        ({"BLOCK=64": "BLOCK=128"}, {"BLOCK=128": "BLOCK=32", "warps=4": "warps=8"}, True),
        ({"num_warps=4": "num_warps=4, num_stages=4"}, {"num_stages=4": "num_stages=3"}, True),
        ({"BLOCK=64": "BLOCK=128"}, {"BLOCK=128": "BLOCK=256"}, False),
        ({"BLOCK=64": "BLOCK=128"}, {"num_warps=4": "num_warps=8"}, False),
    ],
)
def test_a_number_does_not_go_one_way_and_back(
    second: dict[str, str], third: dict[str, str], back: bool
) -> None:
    def changed(text: str, changes: dict[str, str]) -> str:
        for old, new in changes.items():
            text = text.replace(old, new)
        return text

    first = node(TEXT + LAUNCH)
    child = node(changed(first.text, second), first)
    grandchild = node(child.text.replace("x,", "x + 0,"), child)
    assert goes_back(changed(grandchild.text, third), grandchild) is back
