"""The Ray task that runs on a node: it starts the same worker as over SSH, as a child of Ray's worker process.

This module is sent by value and imports the standard library only: nodes need nothing of this project. The worker stays
between tasks as long as Ray keeps its process, so that the packages are imported once.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import Any

#: What is raised when the worker ends in mid-job, so that Ray runs the job again; one of Python's own, as each node has
#: a copy of this module.
WORKER_LOST = ChildProcessError

#: The worker of this process with what it was started for: the archive and the devices that Ray lent.
_kept: dict[str, Any] = {}
_LENT = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NEURON_RT_VISIBLE_CORES")


def run_job(
    archive: bytes, version: str, bootstrap: str, python: str, env: dict[str, str], job: dict[str, Any]
) -> list[dict[str, Any]]:  # fmt: skip
    """Run a job (as in the protocol's message ``job``) and return the worker's messages about it, in order.

    ``python`` is the node's interpreter for kernels, empty for Ray's own; ``env`` are variables for kernels.

    Raises:
        RuntimeError: the worker did not start; with what it said.
        ChildProcessError: it ended before it had answered.
    """
    worker = _worker(archive, version, bootstrap=bootstrap, python=python or sys.executable, env=env)
    try:
        try:
            _send(worker, {"type": "job", "id": "1", "job": job})
        except BrokenPipeError:
            raise WORKER_LOST("the worker on this node ended before it heard of the job") from None
        messages: list[dict[str, Any]] = []
        while True:
            message = _receive(worker)
            if message.get("id") != "1":
                continue
            messages.append(message)
            if message.get("type") == "failed" or message.get("last"):
                return messages
    except BaseException:
        _end()
        raise


def _worker(
    archive: bytes, version: str, bootstrap: str, python: str, env: dict[str, str]
) -> subprocess.Popen[bytes]:
    key = [version, python, env, *(os.environ.get(name) for name in _LENT)]
    previous: subprocess.Popen[bytes] | None = _kept.get("worker")
    if previous is not None and previous.poll() is None and _kept["for"] == key:
        return previous
    _end()
    command = [python, "-c", bootstrap]
    worker = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **env},
        start_new_session=True,
    )
    _kept.update({"worker": worker, "for": key})
    assert worker.stdin is not None
    worker.stdin.write(b"%d\n" % len(archive) + archive)
    worker.stdin.flush()
    hello = _receive(worker)
    if hello.get("type") != "hello":
        _end()
        raise RuntimeError(str(hello.get("message", "the worker did not say hello")))
    return worker


def _end() -> None:
    worker = _kept.pop("worker", None)
    if worker is not None:
        with contextlib.suppress(OSError):
            worker.stdin.close()
        try:
            worker.wait(5)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        worker.stdout.close()


def _send(worker: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert worker.stdin is not None
    body = json.dumps(message).encode()
    worker.stdin.write(b"@accelopt/1 %d\n" % len(body) + body + b"\n")
    worker.stdin.flush()


def _receive(worker: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the next frame; bytes between frames are noise."""
    assert worker.stdout is not None
    while True:
        line = worker.stdout.readline()
        if not line:
            raise WORKER_LOST(f"the worker on this node ended ({worker.wait()})")
        _, magic, length = line.rpartition(b"@accelopt/1 ")
        if magic and length.strip().isdigit():
            message: dict[str, Any] = json.loads(worker.stdout.read(int(length)))
            return message
