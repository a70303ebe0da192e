"""The step ``gate.run``: run the candidate on the drawn inputs. Its process has no seed, no reference and no expected
value.

Nothing that this process says is trusted: outputs are judged from files whose digests were sent when they were
written, and an operation that a candidate may not do ends the process at once (see ``observe.watch``).
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from time import process_time

from accelopt_profiling.comparison.memory import (
    poison_allocator,
    poisoned_memory,
)
from accelopt_profiling.gate.candidate_run import CandidateRun, allow, stop_timers
from accelopt_profiling.gate.case_files import (
    PLAN_FILE,
    forget_requests,
    own_check_of,
)
from accelopt_profiling.gate.loaded_candidate import LoadedCandidate
from accelopt_profiling.gate.observe.clock_shift import Clock
from accelopt_profiling.gate.observe.emulation import emulation
from accelopt_profiling.gate.observe.hostwork import HostWork
from accelopt_profiling.gate.observe.patch_detection import SharedObjects
from accelopt_profiling.gate.observe.salted_hash import SaltedHashes
from accelopt_profiling.gate.observe.watch import Watch
from accelopt_profiling.gate.probes.registry import PROBES
from accelopt_profiling.gate.step_schemas import PlanResult, RunParams, RunResult
from accelopt_profiling.plain import from_plain
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module


def run(context: StepContext, params: RunParams) -> RunResult:
    """Load the candidate, call it once per case with poisoned fresh outputs, and save what it returns."""
    forget_requests(context)
    for name in set(params.hidden) - set(sys.modules) - set(sys.stdlib_module_names):
        sys.modules[name] = None  # type: ignore[assignment]  # importing it now raises ModuleNotFoundError
    with emulation(params.dialect, params.target), poisoned_memory():
        pass  # imports what it needs: the candidate shall be the only one to import from here on
    plan, own_check = _plan(context), own_check_of(context, params.cases)
    poison_allocator()
    probes = [type(probe)() for probe in PROBES]  # of its own: those of the module can be reached by name
    source = str((context.folder / "src").resolve()) + os.sep
    clock, work, hashes = Clock(), HostWork(source), SaltedHashes(source)
    Watch(
        context.folder,
        lambda code, message: context.emit({"violation": {"code": code, "message": message}}),
        params.unchanged,
        params.uses_files,
    ).start()
    allow(params.case_seconds)
    with emulation(params.dialect, params.target) as observation:
        before = SharedObjects()
        candidate = LoadedCandidate(context, params, load_module(context, own_check=own_check), plan)
        candidate.patched += before.changes()
    candidate.asks_device = observation.asks_device()
    calls = CandidateRun(candidate, clock, work)
    calls.first_calls()
    for probe in probes:
        started = process_time()
        probe.runs(calls)
        calls.busy[probe.name] = process_time() - started
    result = replace(calls.result(), salted=hashes.used)
    stop_timers()
    return result


def _plan(context: StepContext) -> PlanResult | None:
    """Read how much of each case is interpreted, and remove it: the candidate is not to know. None where there is no
    original to ask.
    """
    file = context.folder / "gate" / PLAN_FILE
    if not file.is_file():
        return None
    plan = from_plain(PlanResult, json.loads(file.read_text(encoding="utf-8")))
    file.unlink()
    return plan
