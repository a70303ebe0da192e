"""Find out the costs of several candidates, some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from accelopt_agent.budget import BudgetSpent, Meter
from accelopt_agent.tools import CostModel, CostUnknown
from accelopt_agent.trial import Trial
from accelopt_profiling.measurement import KernelMeasurement


async def costs(
    cost: CostModel, trials: Sequence[Trial], kernel: str, parallel: int, meter: Meter
) -> AsyncGenerator[tuple[Trial, KernelMeasurement | CostUnknown], None]:
    """The costs of ``trials`` as they become known, ``parallel`` at a time; closing the generator ends them.

    Raises:
        BudgetSpent: the time ran out meanwhile.
        ToolLost: no further cost can be found out.
    """
    waiting = list(trials)
    running: dict[asyncio.Task[KernelMeasurement], Trial] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max(1, parallel):
                trial = waiting.pop(0)
                running[asyncio.ensure_future(cost.cost(trial.candidate.text, kernel))] = trial
            done, _ = await asyncio.wait(
                running, timeout=meter.seconds_left, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise BudgetSpent(meter.spent() or "the time is used up")
            for task in sorted(done, key=list(running).index):
                trial = running.pop(task)
                try:
                    yield trial, task.result()
                except CostUnknown as error:
                    yield trial, error
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
