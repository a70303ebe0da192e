"""Runs a toy search with a model team in a process of its own: ``python -m support.killed_talk MEMORY ADDRESS``."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from accelopt_agent.events import SuggestionFound
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.optimize import drive
from accelopt_agent.request import Budget
from accelopt_memory.memory import Memory
from support.toy_search import ToyCost, ToyGate, planned, request, us_of


async def main(memory: Path, address: str) -> None:
    settings = ModelSettings(address, "toy", seconds=120.0)
    search_request = replace(
        planned(request(budget=Budget(candidates=1, seconds=None)), calls=1), resume=True
    )
    with Memory.open(memory) as database:
        events = drive(
            search_request,
            ToyCost(),
            ToyGate(),
            database,
            "toy",
            lambda meter: [ModelProposer(settings, meter, "trn1")],
        )
        async for event in events:
            if isinstance(event, SuggestionFound):
                print("suggestion", us_of(event.suggestion.text), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
