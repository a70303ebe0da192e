"""Remember a change that a person made in the editor: through the gate, then into the memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

from accelopt_agent.evaluation.evaluators import CostUnavailableError, EvaluatorLostError
from accelopt_agent.evaluation.host_evaluation import HostCost, HostGate
from accelopt_agent.learn import NotLearnedError, accept_learned, learned_suggestion
from accelopt_agent.request import OptimizeRequest
from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.features.wording import speedup
from accelopt_lsp.service.host_profiles import HostProfiles
from accelopt_lsp.service.protocol import FileText
from accelopt_memory.memory import Memory
from accelopt_profiling.hosts.host import HostUnreachableError


async def learn_change(file: FileText, slow: str, kernel: str, profiles: HostProfiles, memory: Memory) -> str:
    """Check and time the text of ``file`` beside ``slow``, save the pair, and return in words what was saved.

    Raises:
        HostUnavailableError: the host cannot be reached.
        UserError: the change is not accepted, or not faster, or the file has no such kernel any more.
    """
    settings = file.settings
    dialect = next((k.dialect for k in file.found.kernels if k.name == kernel), None)
    if dialect is None:
        raise UserError(f"The file has no kernel {kernel} any more; nothing was remembered.")
    request = OptimizeRequest(
        path=Path(file.path),
        text=slow,
        target=file.targets[dialect],
        root=settings.project_root,
        problem=settings.problem,
        kernel=kernel,
    )
    try:
        host = await profiles.connected(settings)
        learned = await learned_suggestion(
            request, file.text, HostCost(host, request), HostGate(host, request), memory, host.name,
            f"A change to {kernel} by a person.",
        )  # fmt: skip
    except (NotLearnedError, CostUnavailableError) as error:
        raise UserError(f"The change to {kernel} was not remembered. {error}") from None
    except (HostUnreachableError, EvaluatorLostError) as error:
        raise HostUnavailableError(str(error)) from None
    pair = await asyncio.to_thread(accept_learned, memory, learned)
    return f"Remembered the change to {kernel}, {speedup(learned.speedup)}, as the slow-fast pair {pair}."
