"""Remember a change that a person made: through the gate, then into the memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from accelopt_agent.evaluation.evaluators import CostUnavailableError, EvaluatorLostError
from accelopt_agent.evaluation.host_evaluation import HostCost, HostGate
from accelopt_agent.learn import (
    NotLearnedError,
    accept_learned,
    changed_kernel,
    learned_suggestion,
)
from accelopt_lsp.errors import HostUnavailableError, RefusedError
from accelopt_lsp.service.host_profiles import HostProfiles
from accelopt_lsp.service.protocol import FileRequest, LearnedPair, SearchRequest
from accelopt_lsp.service.search import optimize_request
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import rewritten
from accelopt_profiling.hosts.host import HostUnreachableError


async def learn_change(
    file: FileRequest, slow: str, kernel: str | None, summary: str, profiles: HostProfiles, memory: Memory
) -> LearnedPair:
    """``Service.learn``."""
    try:
        name = changed_kernel(slow, file.text, kernel)
        before = rewritten(file.source, slow)
        request = optimize_request(replace(file, source=before), name, SearchRequest())
        host = await profiles.connected(file.settings)
        learned = await learned_suggestion(
            request, file.text, HostCost(host, request), HostGate(host, request), memory, host.name,
            summary or f"A change to {name} by a person.",
        )  # fmt: skip
    except (NotLearnedError, CostUnavailableError) as error:
        raise RefusedError(str(error), error.code) from None
    except (HostUnreachableError, EvaluatorLostError) as error:
        raise HostUnavailableError(str(error)) from None
    pair = await asyncio.to_thread(accept_learned, memory, learned)
    return LearnedPair(pair, name, learned.speedup)
