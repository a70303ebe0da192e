"""The jobs that a worker runs and its error answers, as plain data.

``docs/explanation/worker-protocol.md`` describes the frames.

A job is a list of steps that share one folder on the host. Each step runs in a child process of its own, one after
another, with limits; the folder is removed at the end. Steps are named in ``worker.steps``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.problems.ref import ProblemRef

#: Which preloaded parent process a step is forked from: "numpy" (NKI, comparisons) or "torch" (Triton, torch
#: references).
Runtime = Literal["numpy", "torch"]


#: How far a profile goes: "all"; "cost", only what the time needs, found on stand-ins for the inputs where that works;
#: "cost on inputs", the same on the problem's own inputs. The result is checked by "all" alone.
Extent = Literal["all", "cost", "cost on inputs"]


@dataclass(frozen=True)
class JobFiles:
    """The files a job needs.

    ``kernel`` is the kernel file's path relative to the job's source folder.

    ``files`` maps relative paths to texts; ``import_paths`` are folders of the host searched after the job's own
    (only this machine has them); ``name`` is the kernel file's real path, for messages.
    """

    kernel: str
    files: dict[str, str]
    import_paths: list[str] = field(default_factory=list)
    name: str = ""


@dataclass(frozen=True)
class Limits:
    """The resources that one step may use, all its processes together.

    ``output_bytes`` bounds what user code prints, ``file_bytes`` each file it writes, ``written_bytes`` what it
    writes to files in all (where the host's kernel reports it), and the files that the job's steps left so far.
    """

    seconds: float = 60.0
    memory_bytes: int = 12 << 30
    output_bytes: int = 1 << 20
    file_bytes: int = 4 << 30
    written_bytes: int = 24 << 30
    processes: int = 512
    open_files: int = 512


@dataclass(frozen=True)
class Step:
    """One child process: the step's name, the preloaded parent it is forked from, its parameters and limits.

    A ``device`` step runs on the host's accelerator: one at a time on a host, for all clients together.
    """

    name: str
    runtime: Runtime
    params: dict[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    device: bool = False


@dataclass(frozen=True)
class Job:
    """``background`` jobs (a search's candidates) wait for a free core and run at low priority."""

    source: JobFiles
    steps: list[Step]
    background: bool = False


@dataclass(frozen=True)
class MeasureOptions:
    """How a kernel is profiled.

    ``extent`` leaves out what a comparison of times does not need; ``detail`` asks for the slow facts too (machine code
    per line), ``timeline`` for when each engine does what. ``launches`` says of a kernel, by name, for which of how
    many launches its cost is stated; where it says nothing or the run makes another number of launches, that is the
    costliest. ``slow_configurations`` are an autotuner's, by kernel, that need not be tried
    (``KernelMeasurement.slow_configurations``).
    """

    extent: Extent = "all"
    detail: bool = True
    timeline: bool = False
    launches: dict[str, tuple[int, int]] = field(default_factory=dict)
    slow_configurations: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ProfileParams:
    """Parameters of the step ``profile``.

    ``input_specs`` are shapes and dtypes seen for the same problem before, so that first numbers need not wait for
    the inputs to be drawn.
    """

    kernels: list[Kernel]
    problem: ProblemRef | None
    target: str
    host: str = "local"
    input_specs: list[dict[str, Any]] | None = None
    seed: int = 0
    options: MeasureOptions = MeasureOptions()


@dataclass(frozen=True)
class StepError:
    """The reason why a step ended without an answer.

    ``code`` is stable: "user-error" (user code raised), "problem-...", "timeout", "memory", "crashed", "killed",
    "too-much-output", "missing-package", "unsupported", "disk-full". ``file`` and ``line`` point into the job's
    source where known (relative path, 1-based).
    """

    code: str
    message: str
    file: str | None = None
    line: int | None = None
    detail: str = ""
