"""What was counted while interpreting a sample of a launch's programs, per source line."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class LineCounts:
    """Sums over the sampled programs for one source line. Sectors are 32 bytes.

    ``load_bytes``/``store_bytes`` are useful bytes (lanes that are not masked off); ``lanes`` and ``masked`` count
    lanes of memory operations; ``mma_flops`` by input dtype; ``special`` counts exp, sin, sqrt and the like.
    """

    load_bytes: int = 0
    store_bytes: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    lanes: int = 0
    masked: int = 0
    float_ops: int = 0
    int_ops: int = 0
    special: int = 0
    atomics: int = 0
    mma_flops: dict[str, int] = field(default_factory=dict)


@dataclass
class LaunchCounts:
    """``lines`` by 1-based line; ``programs`` is the launch's grid size and ``sampled`` how many were interpreted.

    ``unique_load_sectors``/``unique_store_sectors`` are, per tensor argument (by name), the distinct sectors the
    sample touched; ``load_sectors``/``store_sectors`` are all it asked for, each access counted;
    ``tensor_bytes`` the tensor's size. They feed the DRAM estimate.
    """

    programs: int
    sampled: int
    lines: dict[int, LineCounts] = field(default_factory=dict)
    unique_load_sectors: dict[str, int] = field(default_factory=dict)
    unique_store_sectors: dict[str, int] = field(default_factory=dict)
    tensor_bytes: dict[str, int] = field(default_factory=dict)
    load_sectors: dict[str, int] = field(default_factory=dict)
    store_sectors: dict[str, int] = field(default_factory=dict)
