"""The recording of a kernel file as data: the calls that launched its kernels, in JSON; nothing in it is executed.

A recording lies beside the kernel file as ``<stem>_recording.json``. Arguments are JSON values; what JSON has no words
for is an object with one key (see ``value_encoding``). Tensors are views of the call's ``storages``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.plain import from_plain

FORMAT = "accelopt_recording"
VERSION = 1
ENDING = "_recording.json"


@dataclass
class RecordedCall:
    """A call of the kernel file's function ``entry`` (``Softmax.apply`` of a class) with encoded ``arguments``, the
    last of which are passed by the names in ``keywords``.

    With a ``grid`` the entry is a kernel, and the call its launch. ``kernels`` maps the kernels that the call launched
    to launches per call; ``count`` is how often a call of these shapes was made, ``bytes`` the size of its tensors.
    ``approximated`` names arguments whose values are drawn anew from a description.
    """

    entry: str
    arguments: list[Any]
    keywords: list[str] = field(default_factory=list)
    grid: list[int] | None = None
    storages: list[dict[str, Any]] = field(default_factory=list)
    kernels: dict[str, int] = field(default_factory=dict)
    count: int = 1
    bytes: int = 0
    approximated: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Recording:
    """The recorded calls of one kernel file, the headline first.

    ``command`` and ``device`` say what was run where.
    """

    kernel_file: str
    command: list[str] = field(default_factory=list)
    device: str = ""
    calls: list[RecordedCall] = field(default_factory=list)


def recording_path(kernel_file: Path) -> Path:
    """Return the path of a kernel file's recording: beside it."""
    return kernel_file.with_name(f"{kernel_file.stem}{ENDING}")


def is_recording(data: object) -> bool:
    """Check whether parsed JSON claims to be a recording."""
    return isinstance(data, dict) and FORMAT in data


def parse_recording(text: str) -> Recording:
    """Read a recording.

    Raises:
        ValueError: it is none, of another version, or a call in it does not have the form.
    """
    data = json.loads(text)
    if not is_recording(data):
        raise ValueError("it is not a recording")
    if data[FORMAT] != VERSION:
        raise ValueError(f"it is a recording of version {data[FORMAT]!r}; this version reads {VERSION}")
    recording = from_plain(Recording, data)
    if not recording.calls:
        raise ValueError("it holds no call")
    return recording


def recording_text(recording: Recording) -> str:
    """Return a recording as JSON text, one call a line."""
    head = {FORMAT: VERSION, **{k: v for k, v in asdict(recording).items() if k != "calls"}}
    calls = ",\n  ".join(json.dumps(asdict(call)) for call in recording.calls)
    return json.dumps(head, indent=1)[:-2] + f',\n "calls": [\n  {calls}\n ]\n}}\n'


def headline_first(calls: list[RecordedCall]) -> list[RecordedCall]:
    """Order calls by what they move in all, the number of calls times their bytes; the largest among equals first."""
    return sorted(calls, key=lambda call: (-call.count * call.bytes, -call.bytes))


def covering(calls: list[RecordedCall]) -> list[int]:
    """Return the numbers of the calls that together launch every recorded kernel, each kernel's headline."""
    chosen: list[int] = []
    reached: set[str] = set()
    for number, call in enumerate(calls):
        if not chosen or set(call.kernels) - reached:
            chosen.append(number)
            reached |= set(call.kernels)
    return chosen
