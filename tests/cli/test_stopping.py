"""A search of 4,000,000 atomics ends by its budget and by signals, with what it has."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from support.nki_kernels import SILU

from accelopt_agent.search.control import SearchControl, SearchStoppedError
from accelopt_lsp.cli.optimize import stopped_by_signals
from accelopt_lsp.own_process import own_process
from accelopt_lsp.search_outcome import continuing

ATOMICS = """\
import torch
import triton
import triton.language as tl


@triton.jit
def histogram(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=mask)


def entry(x):
    out = torch.zeros(256, dtype=torch.int32, device=x.device)
    n = x.numel()
    histogram[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out


def get_inputs():
    return [torch.randint(0, 256, (4 * 1024 * 1024,), dtype=torch.int32)]


def reference(x):
    return torch.bincount(x.long(), minlength=256).to(torch.int32)
"""

#: Within so many seconds a search has ended (the contract of budgets and signals).
PROMISE = 15.0


def started(home: Path, budget: str) -> subprocess.Popen[str]:
    (home / "histogram.py").write_text(ATOMICS)
    line = [*own_process("accelopt_lsp.cli.main"), "optimize", "histogram.py", "--no-model", "--json"]
    return subprocess.Popen(
        [*line, "--budget", budget], cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


@pytest.mark.slow
def test_a_budget_of_seconds_is_kept(home: Path) -> None:
    began = time.monotonic()
    search = started(home, "seconds=15")
    out, err = search.communicate(timeout=120)
    assert time.monotonic() - began < 15 + PROMISE
    report = json.loads(out)
    assert search.returncode == (0 if report["suggestions"] else 1), err
    assert "the time of 15 s is used up" in report["stopped"]["reason"]
    assert report["stopped"]["continue"].endswith("--budget seconds=15 --resume")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", ["looking for", "faster, unchecked"])
def test_a_signal_ends_a_search_as_its_budget_does(home: Path, number: signal.Signals, after: str) -> None:
    search = started(home, "minutes=30")
    assert search.stderr is not None
    lines: list[str] = []
    for line in search.stderr:
        lines.append(line)
        if after in line:
            break
    began = time.monotonic()
    os.killpg(search.pid, number)  # as a terminal does: the worker gets it too
    out, err = search.communicate(timeout=120)
    assert time.monotonic() - began < PROMISE
    report = json.loads(out)
    assert search.returncode == 130
    assert "interrupted" in report["stopped"]["reason"]
    assert report["tried"] == sum(
        " rule:" in line or " memory:" in line for line in lines if line[:4].strip()
    )
    faster = {v["text"] for v in report["stopped"]["unchecked"]}
    assert len(faster) + len(report["suggestions"]) >= (after == "faster, unchecked")
    assert "To continue: accelopt optimize histogram.py" in err


@pytest.mark.parametrize(
    ("arguments", "again"),
    [
        (["optimize", "k.py"], "accelopt optimize k.py --resume"),
        (["optimize", "--resume", "a b.py"], "accelopt optimize 'a b.py' --resume"),
        (["optimize", "--json", "--", "-k.py"], "accelopt optimize --json --resume -- -k.py"),
    ],
)
def test_the_command_that_continues(arguments: list[str], again: str) -> None:
    assert continuing(arguments) == again


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_wakes_a_search_that_waits(number: signal.Signals) -> None:
    """Whichever thread the system gives it to, as where it comes just before the loop begins to wait."""

    async def search() -> None:
        control = SearchControl()
        with stopped_by_signals(partial(control.stop, "interrupted")):
            thread = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), number))
            thread.start()
            with pytest.raises(SearchStoppedError, match="interrupted"):
                await control.unless_stopped(asyncio.sleep(PROMISE))

    inherited = signal.signal(number, signal.default_int_handler)  # a job in the background ignores Ctrl-C
    try:
        began = time.monotonic()
        asyncio.run(search())
        assert time.monotonic() - began < PROMISE / 2
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, inherited)


LOOPS = """
import importlib, sys
module, _, name = sys.argv.pop(1).partition(":")
*owner, name = name.split(".")
holder = importlib.import_module(module)
for part in owner:
    holder = getattr(holder, part)

def loop(*arguments, **options):
    print("it loops", file=sys.stderr, flush=True)
    while True:
        pass

setattr(holder, name, loop)
from accelopt_lsp.cli.main import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "accelopt_agent.rules.catalogue:proposals",
        "accelopt_agent.search.trial:KnownRewrites.read",
        "accelopt_profiling.gate.gate:read",
        "accelopt_memory.memory:Memory.traps",
        "accelopt_profiling.job_files:job_files",
    ],
)
def test_python_that_loops_holds_up_no_end(home: Path, what: str) -> None:
    """Whatever part of a search loops in this process, it says what it has and the process ends."""
    (home / "silu.py").write_text(SILU)
    search = subprocess.Popen(
        [sys.executable, "-c", LOOPS, what, "optimize", "silu.py", "--no-model", "--json"], cwd=home,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert search.stderr is not None
    assert any("it loops" in line for line in search.stderr)
    began = time.monotonic()
    search.terminate()
    try:
        out, _ = search.communicate(timeout=120)
    finally:
        search.kill()
    assert time.monotonic() - began < PROMISE
    assert (search.returncode, "interrupted" in json.loads(out)["stopped"]["reason"]) == (130, True)
