"""Ask a host what it has and does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from accelopt_lsp.resources import host_named

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_profiling.hosts.host import HostActivity
    from accelopt_profiling.worker.isolation import Isolation


@dataclass(frozen=True)
class Reached:
    """What one host answered; ``error`` says why it did not.

    ``isolation`` is what its kernel lets a worker keep from user code, ``activity`` what runs there for this user now.
    """

    name: str
    reachable: bool
    python: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    devices: list[dict[str, Any]] = field(default_factory=list)
    memory_bytes: int = 0
    memory_free_bytes: int = 0
    resources: dict[str, float] = field(default_factory=dict)
    isolation: Isolation | None = None
    activity: HostActivity | None = None
    error: str | None = None

    @property
    def device_names(self) -> list[str]:
        """Its devices, and how much of a cluster's kinds of resources is free."""
        devices = [str(device.get("name", device)) for device in self.devices]
        free = self.activity.resources_free if self.activity else {}
        kinds = {n: a for n, a in self.resources.items() if n not in ("CPU", "memory", "object_store_memory")}
        return devices + [
            f"{name} {free.get(name, amount):g} of {amount:g} free" for name, amount in kinds.items()
        ]


async def reach(settings: Settings, name: str) -> Reached:
    """Connect to a host of the settings, ask it, and leave it."""
    from accelopt_profiling.hosts.host import HostUnreachableError

    host = host_named(settings, name)
    try:
        facts = await host.facts()
        activity = await host.activity()
    except HostUnreachableError as error:
        return Reached(name, False, error=str(error))
    finally:
        await host.close()
    own = [
        worker for worker in activity.workers if worker.jobs or worker.waiting
    ]  # the one just started has none
    return Reached(
        name,
        True,
        python=facts.python,
        versions=facts.versions,
        devices=facts.devices,
        memory_bytes=facts.memory_bytes,
        memory_free_bytes=facts.memory_free_bytes,
        resources=facts.resources,
        isolation=facts.isolation,
        activity=replace(activity, workers=own),
    )
