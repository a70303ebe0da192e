"""A Ray cluster as a host: its scheduler places jobs on nodes, runs them again when a node is lost, and drains."""

from __future__ import annotations

import json
import sys

from accelopt_profiling.hosts.local import program
from accelopt_profiling.hosts.ray_bridge import parse_ask
from accelopt_profiling.hosts.worker_connection import WorkerConnection
from accelopt_profiling.hosts.worker_host import WorkerHost
from accelopt_profiling.jobs import Runtime


class RayHost(WorkerHost):
    """Runs jobs on the cluster at ``address`` ("ray://HOST:10001", "HOST:6379", or "auto" for one started here).

    ``ask`` is what each job asks for, such as "num_gpus=1" or "neuron_cores=1"; empty: one accelerator of the job's
    dialect where the cluster has any. ``python`` is the interpreter for kernels on the nodes; empty: Ray's own,
    and ``env`` variables for them. A job's messages arrive together at its end.

    Raises:
        ValueError: ``ask`` cannot be read.
    """

    remote = True

    def __init__(
        self,
        name: str,
        address: str,
        ask: str = "",
        python: str = "",
        env: dict[str, str] | None = None,
        patience: float = 90.0,
    ) -> None:
        try:
            parse_ask(ask)
        except ValueError:
            raise ValueError(f'hosts.{name}.ask must look like "num_gpus=1", not {ask!r}') from None
        super().__init__(name, first_pause=2.0)
        bridge = program("accelopt_profiling.hosts.ray_bridge")
        self._command = [sys.executable, "-c", bridge, address, ask, python, json.dumps(env or {})]
        self._patience = patience

    def _new_connection(self) -> WorkerConnection:
        return WorkerConnection(self.name, self._command, patience=self._patience)

    async def preload(self, runtime: Runtime) -> None:
        """Do nothing: the scheduler chooses the node of a job only when it is submitted."""
