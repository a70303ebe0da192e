"""Triton's GPU dialect (TTGIR) read as text: layouts, matrix instructions, pipelining, layout conversions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

_ALIAS = re.compile(r"^#(\w+) = #(\w+)\.(\w+)<\{(.*)\}>$")
_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$")
_FILE = re.compile(r'^"([^"]+)":(\d+):\d+$')
_NAMED = re.compile(r'^"[^"]*"\(#(loc\d*)\)$')
_CALLSITE = re.compile(r"^callsite\(#(loc\d*) at #(loc\d*)\)$")
_FUSED = re.compile(r"#(loc\d*)")
_AT = re.compile(r"loc\(#(loc\d*)\)$")
_POINTERS = re.compile(r"tensor<((?:\d+x)+)!tt\.ptr<(\w+)>, #(\w+)>")
_VALUES = re.compile(r"tensor<((?:\d+x)+)([a-z]\w+), #(\w+)> loc")  # AMD's buffer operations show no pointers
_ALLOCATION = re.compile(r"= ttg\.local_alloc +: \(\) -> !ttg\.memdesc<(\d+)x((?:\d+x)+)(\w+), ")
_BITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Layout:
    """A blocked layout: how a tensor is distributed over threads.

    Each tuple has one entry per dimension; ``order`` starts with the dimension that varies fastest.
    """

    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_program: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True)
class Access:
    """One global memory operation: its line, ``kind`` ("load", "store" or "async copy"), the tensor's shape, the
    element's bits and its layout where it is a blocked one."""

    line: int
    kind: str
    shape: tuple[int, ...]
    bits: int
    layout: Layout | None

    @property
    def warp_run_bytes(self) -> int | None:
        """Return the longest run of neighbouring elements, in bytes, that one warp covers along the fastest dimension.

        Below 32 (one sector) a warp's request cannot be well coalesced, whatever the addresses are.
        """
        if self.layout is None:
            return None
        fast = self.layout.order[0]
        run = self.layout.size_per_thread[fast] * self.layout.threads_per_warp[fast]
        return min(run, self.shape[fast]) * self.bits // 8


@dataclass(frozen=True)
class TtgirFacts:
    """``matrix_unit``: "mma", "wgmma", "tcgen05", "mfma", "wmma" or None.

    ``pipeline_depth``: tiles in flight in shared memory at once, 1 without pipelining. ``convert_layouts``: layout
    conversions per line (they go through shared memory).
    """

    matrix_unit: str | None = None
    pipeline_depth: int = 1
    accesses: tuple[Access, ...] = ()
    convert_layouts: dict[int, int] = field(default_factory=dict)


def parse_ttgir(text: str, file: str) -> TtgirFacts:
    """Read the text of a module in Triton's GPU dialect.

    ``file`` is the user's; only its last part is compared.
    """
    rows = text.splitlines()
    locations = {match[1]: match[2] for row in rows if (match := _LOCATION.match(row))}
    layouts, matrix = _layouts(rows)
    user_file = PurePath(file).name
    accesses: list[Access] = []
    conversions: dict[int, int] = {}
    depth = 1
    for row in rows:
        at = _AT.search(row)
        line = _line(at[1], locations, user_file) if at else 0
        if kind := _access_kind(row):
            if pointers := _POINTERS.search(row) or _VALUES.search(row):
                shape = tuple(int(n) for n in pointers[1].rstrip("x").split("x"))
                bits = _BITS.search(pointers[2])
                accesses.append(
                    Access(
                        line,
                        kind,
                        shape=shape,
                        bits=int(bits[0]) if bits else 8,
                        layout=layouts.get(pointers[3]),
                    )
                )
        elif "ttg.convert_layout" in row:
            conversions[line] = conversions.get(line, 0) + 1
        elif (allocation := _ALLOCATION.search(row)) and allocation[3] != "i64":  # i64 buffers are barriers
            depth = max(depth, int(allocation[1]) if allocation[2].count("x") > 1 else 1)
        elif "ttng.tc_gen5_mma" in row:
            matrix = "tcgen05"
    return TtgirFacts(matrix, depth, tuple(accesses), dict(sorted(conversions.items())))


def _layouts(rows: list[str]) -> tuple[dict[str, Layout], str | None]:
    layouts: dict[str, Layout] = {}
    matrix = None
    for row in rows:
        if not (alias := _ALIAS.match(row)):
            continue
        name, _, kind, body = alias.groups()
        if kind == "blocked":
            fields = {
                key: tuple(map(int, value.split(",")))
                for key, value in re.findall(r"(\w+) = \[([\d, ]+)\]", body)
            }
            keys = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
            layouts[name] = Layout(*(fields[key] for key in keys))
        elif kind == "nvidia_mma":
            matrix = "wgmma" if "versionMajor = 3" in body else "mma"
        elif kind == "amd_mfma":
            matrix = "mfma"
        elif kind == "amd_wmma":
            matrix = "wmma"
    return layouts, matrix


def _access_kind(row: str) -> str | None:
    for operation, kind in (
        ("tt.load ", "load"),
        ("tt.store ", "store"),
        ("ttg.async_copy_global_to_local ", "async copy"),
        ("amdg.buffer_load ", "load"),
        ("amdg.buffer_store ", "store"),
    ):
        if operation in row:
            return kind
    return None


def _line(name: str, locations: dict[str, str], user_file: str, depth: int = 0) -> int:
    """Resolve a location to the user's line, through names and fused positions, and call sites from the inside out."""
    text = locations.get(name, "")
    if depth > 32:
        return 0
    if match := _FILE.match(text):
        return int(match[2]) if PurePath(match[1]).name == user_file else 0
    if alias := _NAMED.match(text):
        return _line(alias[1], locations, user_file, depth + 1)
    if site := _CALLSITE.match(text):
        inner = _line(site[1], locations, user_file, depth + 1)
        return inner or _line(site[2], locations, user_file, depth + 1)
    if text.startswith("fused"):
        for part in _FUSED.findall(text):
            if line := _line(part, locations, user_file, depth + 1):
                return line
    return 0
