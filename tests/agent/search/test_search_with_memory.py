"""With real rules, the real profiler and the real gate: a pair accepted on one kernel helps on another, sooner."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_agent.events import CandidateTried, Event, Finished, SuggestionFound
from accelopt_agent.optimize import optimize
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.suggestions.accept import accept
from accelopt_agent.suggestions.apply import edits_for
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_agent.suggestions.text_edit import ApplyRefusal, apply_to_text
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host

EXAMPLE = Path(__file__).parents[3] / "examples" / "nki_silu.py"

#: Another computation than the example's: two inputs, a gate and a scale, other names, loops and tile sizes.
GATED = '''\
"""(a * sigmoid(a)) * b, one instruction for each operation."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

WIDTH = 128


@nki.jit
def gated(a, b):
    height, length = a.shape
    result = nl.ndarray((height, length), dtype=a.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(WIDTH)[None, :]
    for row in nl.affine_range(height // 128):
        for column in nl.affine_range(length // WIDTH):
            left = nl.load(a[row * 128 + p, column * WIDTH + f])
            right = nl.load(b[row * 128 + p, column * WIDTH + f])
            minus = nl.multiply(left, -1.0)
            small = nl.exp(minus)
            below = nl.add(small, 1.0)
            gate = nl.divide(left, below)
            both = nl.multiply(gate, right)
            nl.store(result[row * 128 + p, column * WIDTH + f], value=both)
    return result


def get_inputs():
    return [np.random.standard_normal((256, 2048)).astype(np.float32) for _ in range(2)]


def reference(a, b):
    return a / (1 + np.exp(-a)) * b
'''


async def search(shared_host: Host, path: Path, memory: Memory | None) -> list[Event]:
    request = OptimizeRequest(
        examine(path, path.read_text(), project_root=path.parent),
        "trn1",
        budget=Budget(candidates=24, seconds=600),
    )
    events = [event async for event in optimize(request, shared_host, memory)]
    assert isinstance(events[-1], Finished)
    return events


def first(events: list[Event]) -> tuple[int, Suggestion]:
    """The first suggestion, and after how many others it was tried. What is tried while it is checked does not
    count."""
    suggestion = next((e.suggestion for e in events if isinstance(e, SuggestionFound)), None)
    if suggestion is None:
        pytest.fail(f"nothing was found: {events[-1]}")
    tried = [e.candidate.text for e in events if isinstance(e, CandidateTried)]
    return tried.index(suggestion.text), suggestion


@pytest.mark.slow
async def test_an_accepted_pair_leads_to_a_suggestion_on_another_kernel_sooner(
    shared_host: Host, tmp_path: Path
) -> None:
    example = tmp_path / "nki_silu.py"
    example.write_text(EXAMPLE.read_text().replace("m=4096, n=7168", "m=256, n=2048"))
    other = tmp_path / "gated.py"
    other.write_text(GATED)

    without = await search(shared_host, other, None)
    with Memory.open(tmp_path / "memory.db") as memory:
        suggestions = [
            e.suggestion for e in await search(shared_host, example, memory) if isinstance(e, SuggestionFound)
        ]
        best = max(suggestions, key=lambda s: s.speedup.value)
        edits = edits_for(example.read_text(), best)
        assert not isinstance(edits, ApplyRefusal)
        assert apply_to_text(example.read_text(), edits) == best.text
        pair = accept(memory, best)
        within = await search(shared_host, other, memory)

    tried_without, slow_start = first(without)
    tried_with, head_start = first(within)
    assert head_start.origin == f"memory:{pair}"
    assert head_start.gate.accepted
    assert tried_with < tried_without
    assert head_start.speedup.value >= slow_start.speedup.value
    assert not any(
        e.suggestion.origin.startswith("memory:") for e in without if isinstance(e, SuggestionFound)
    )
