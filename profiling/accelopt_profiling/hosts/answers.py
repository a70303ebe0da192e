"""What a worker says, as the data of ``hosts.host``. It comes from another machine: anything may be in it."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.hosts.host import HostActivity, HostFacts
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.worker.activity import Activity
from accelopt_profiling.worker.isolation import Isolation


def facts_in(name: str, hello: dict[str, Any]) -> HostFacts:
    """The facts in a worker's first message. Raises ValueError: what does not fit in it."""
    devices = hello.get("devices", [])
    if not isinstance(devices, list) or not all(isinstance(device, dict) for device in devices):
        raise ValueError("its devices are no list of objects")
    try:
        isolation = from_plain(Isolation, hello.get("isolation"))
    except ValueError:
        isolation = Isolation(note="The worker did not say.")
    return HostFacts(
        name=name, python=str(hello.get("python", "")), devices=devices, isolation=isolation,
        versions={package: str(version) for package, version in _object(hello, "versions").items()},
        memory_bytes=int(_number(hello.get("memory_bytes", 0))),
        memory_free_bytes=int(_number(hello.get("memory_free_bytes", 0))),
        resources={name: _number(amount) for name, amount in _object(hello, "resources").items()},
    )  # fmt: skip


def activity_in(answer: dict[str, Any]) -> HostActivity:
    """What runs on a host, from the answer to "status". Raises ValueError: what does not fit in it."""
    holder = answer.get("device")
    device = printable(str(holder.get("what", "another program"))) if isinstance(holder, dict) else ""
    free = {name: _number(amount) for name, amount in _object(answer, "resources_free").items()}
    return HostActivity(from_plain(list[Activity], answer.get("workers", [])), device, free)


def step_error_in(failed: dict[str, Any]) -> StepError:
    try:
        return from_plain(StepError, failed.get("error"))
    except ValueError:
        return StepError(
            "internal", f"The worker sent an error that cannot be read: {failed.get('error')!r:.200}"
        )


def printable(text: str) -> str:
    """Without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def _object(message: dict[str, Any], name: str) -> dict[str, Any]:
    value = message.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"its {name} are no object")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e300:
        raise ValueError(f"{value!r:.40} is no amount")
    return value
