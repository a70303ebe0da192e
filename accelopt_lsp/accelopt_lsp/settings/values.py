"""The classes that hold the values of all settings: ``scripts/generated.py`` writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class TargetSettings:
    triton: str
    nki: str


@dataclass(frozen=True)
class HostSettings:
    ssh: str = ""
    python: str = "python3"
    ray: str = ""
    ask: str = ""
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RoleSettings:
    model: str
    temperature: float | None


@dataclass(frozen=True)
class ConfiguredModel:
    base_url: str
    model: str
    api_key_env: str
    share: Literal["file", "kernel"]
    seconds: float
    answer_tokens: int
    price_in: float
    price_out: float
    price_cached: float
    temperature: float | None
    samples: int
    repairs: int
    alone: bool
    planner: RoleSettings
    coder: RoleSettings
    debugger: RoleSettings
    summarizer: RoleSettings


@dataclass(frozen=True)
class MemorySettings:
    mode: Literal["off", "local", "project"]
    path: str


@dataclass(frozen=True)
class LimitSettings:
    seconds: float
    memory_mb: int
    output_kb: int


@dataclass(frozen=True)
class SearchSettings:
    candidates: int
    minutes: float
    strategy: Literal["hybrid", "beam", "tree"]
    percent_of_peak: float
    tokens: int
    sources: str
    depth: int
    model_share: float
    repairs: int
    width: int
    breadth: int
    rounds: int
    incumbents: bool
    epsilon: float
    root_children: int
    dead_after: int
    near_misses: bool
    experience: Literal["ours", "none", "random-16", "fifo-16"]
    lessons: int
    lesson_gain: float
    lesson_loss: float


@dataclass(frozen=True)
class EditorSettings:
    lens: bool
    lens_detail: Literal["short", "normal", "full"]
    hints: bool
    findings: bool
    profile_on: Literal["open and save", "save", "command"]


@dataclass(frozen=True)
class SettingValues:
    hosts: dict[str, HostSettings]
    host: str
    python: str
    require_isolation: bool
    ignore: str
    target: TargetSettings
    model: ConfiguredModel
    memory: MemorySettings
    limits: LimitSettings
    search: SearchSettings
    editor: EditorSettings
    env: dict[str, str] = field(repr=False, default_factory=dict)
    problem: str | dict[str, str] | None = None
