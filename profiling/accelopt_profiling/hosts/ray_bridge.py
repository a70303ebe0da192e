"""A process between the worker protocol and a Ray cluster: jobs come in as frames and become Ray tasks.

It is a process of its own so that Ray's threads, signals and output stay out of the editor's server, and so that a
cluster that is lost looks like any other lost worker. Arguments: the cluster's address, what each job asks for
("num_gpus=1, neuron_cores=1"; empty: what the cluster has), the nodes' Python, and variables for kernels as JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import sys
import threading
from typing import Any

from accelopt_profiling.hosts import ray_task
from accelopt_profiling.hosts.archive import BOOTSTRAP, worker_archive
from accelopt_profiling.worker.frames import Decoder, encode
from accelopt_profiling.worker.handshake import PROTOCOL

#: How often the cluster runs a task again whose node or process was lost.
RETRIES = 3


class Bridge:
    """Serves one client on two descriptors; ``ray`` is the connected module."""

    def __init__(self, ray: Any, ask: dict[str, float], python: str, env: dict[str, str], write: int) -> None:
        self._ray, self._ask, self._python, self._env, self._write = ray, ask, python, env, write
        self._writing = threading.Lock()
        self._tasks: dict[str, Any] = {}
        ray.cloudpickle.register_pickle_by_value(ray_task)
        lost = [ray_task.WORKER_LOST]
        self._run = ray.remote(max_retries=RETRIES, retry_exceptions=lost, num_cpus=1)(ray_task.run_job)
        archive = worker_archive()
        self._archive = ray.put(archive)
        self._version = hashlib.sha256(archive).hexdigest()

    def serve(self, read: int) -> None:
        decoder = Decoder()
        self.send(self._hello())
        while data := os.read(read, 1 << 20):
            for message in decoder.feed(data):
                if message.get("type") == "job":
                    self._submit(str(message.get("id")), message.get("job"))
                elif message.get("type") == "cancel":
                    self._cancel(str(message.get("id")))
                elif message.get("type") == "status":
                    free = _without_internal(self._ray.available_resources())
                    answer: dict[str, Any] = {"type": "status", "id": message.get("id"), "workers": []}
                    self.send({**answer, "resources_free": free})
                elif message.get("type") == "shutdown":
                    return

    def end(self) -> None:
        for job_id in list(self._tasks):
            self._cancel(job_id)
        self._ray.shutdown()

    def send(self, message: dict[str, Any]) -> None:
        with self._writing:
            data = memoryview(encode(message))
            while data:
                data = data[os.write(self._write, data) :]

    def _hello(self) -> dict[str, Any]:
        resources = self._ray.cluster_resources()
        kinds = [name.partition(":")[2] for name in resources if name.startswith("accelerator_type:")]
        gpus = (
            {"name": ", ".join(kinds) or "GPU", "count": resources["GPU"]} if resources.get("GPU") else None
        )
        return {
            "type": "hello", "protocol": PROTOCOL, "python": platform.python_version(), "system": "Ray cluster",
            "cpus": int(resources.get("CPU", 0)), "memory_bytes": int(resources.get("memory", 0)),
            "versions": {"ray": importlib.metadata.version("ray")}, "devices": [gpus] if gpus else [],
            "resources": _without_internal(resources),
            "isolation": {"note": "each node's worker isolates its steps as far as it can"},
        }  # fmt: skip

    def _submit(self, job_id: str, job: Any) -> None:
        try:
            options = _options(self._ask or _default_ask(job, self._ray.cluster_resources()))
            task = self._run.options(**options).remote(
                self._archive, self._version, BOOTSTRAP, self._python, self._env, job
            )
        except Exception as error:  # Ray raises many kinds; each means that the job was not taken
            self._fail(job_id, "host-failed", f"The Ray cluster did not take the job: {error}")
            return
        self._tasks[job_id] = task
        threading.Thread(target=self._wait, args=(job_id, task), daemon=True).start()

    def _cancel(self, job_id: str) -> None:
        task = self._tasks.pop(job_id, None)
        if task is not None:
            with contextlib.suppress(Exception):  # it ended in the meantime
                self._ray.cancel(task, force=True)

    def _wait(self, job_id: str, task: Any) -> None:
        lost = (
            ray_task.WORKER_LOST,
            self._ray.exceptions.WorkerCrashedError,
            self._ray.exceptions.NodeDiedError,
            self._ray.exceptions.ObjectLostError,
        )
        messages: list[dict[str, Any]] = []
        code = why = ""
        try:
            messages = self._ray.get(task)
        except lost as error:
            code, why = "crashed", f"The cluster lost the job {RETRIES + 1} times: {_last_line(error)}"
        except Exception as error:
            code, why = "host-failed", f"The job failed on the cluster: {_last_line(error)}"
        if self._tasks.pop(job_id, None) is None:
            return  # it was cancelled
        if code:
            self._fail(job_id, code, why)
        for message in messages:
            self.send({**message, "id": job_id})

    def _fail(self, job_id: str, code: str, message: str) -> None:
        error = {"code": code, "message": message}
        self.send({"type": "failed", "id": job_id, "step": "", "error": error})


def _without_internal(resources: dict[str, float]) -> dict[str, float]:
    return {k: v for k, v in resources.items() if not k.startswith(("node:", "accelerator_type:"))}


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def _default_ask(job: Any, resources: dict[str, float]) -> dict[str, float]:
    """Return the resources of a job without settings: one accelerator of its dialect, where the cluster has any."""
    runtimes = {step.get("runtime") for step in job.get("steps", [])}
    if "torch" in runtimes:
        return {"num_gpus": 1} if resources.get("GPU") else {}
    return {"neuron_cores": 1} if resources.get("neuron_cores") else {}


def _options(ask: dict[str, float]) -> dict[str, Any]:
    own = {name: amount for name, amount in ask.items() if name in ("num_cpus", "num_gpus", "memory")}
    return {**own, "resources": {name: amount for name, amount in ask.items() if name not in own}}


def parse_ask(text: str) -> dict[str, float]:
    """Parse "num_gpus=1, neuron_cores=2" into numbers by name. Raises ValueError."""
    ask: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, amount = part.partition("=")
        ask[name.strip()] = float(amount)
        if not name.strip() or not 0 <= ask[name.strip()] < math.inf:
            raise ValueError(f"{part} is no amount of a resource")
    return ask


def main() -> None:
    address, ask, python, env = sys.argv[1:5]
    channel = os.dup(1)
    os.dup2(2, 1)  # what Ray prints is no frame
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        why = f"ray cannot be imported here ({error}): pip install 'accelopt-lsp[ray]'"
        os.write(channel, encode({"type": "refused", "message": why}))
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace="accelopt")
        bridge = Bridge(ray, parse_ask(ask), python=python, env=json.loads(env), write=channel)
    except Exception as error:
        why = f"the Ray cluster at {address} cannot be used: {_last_line(error)}"
        os.write(channel, encode({"type": "refused", "message": why}))
        return
    try:
        bridge.serve(0)
    finally:
        bridge.end()
        os._exit(0)  # threads that still wait for tasks do not keep this process


if __name__ == "__main__":
    main()
