"""Defines a benchmark case: one kernel with its reference, from our tasks or from a user's data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from accelopt_profiling.examination import examine
from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.source_text import read_text
from nkibench.task import NkiDialect, Task, tasks


@dataclass(frozen=True)
class BenchmarkCase:
    """A kernel file with its reference module.

    ``root`` is the folder that both are in.

    ``name`` is the operator's; ``task`` is ours of that name, None where we have none (then nothing is published
    of its peak).
    """

    name: str
    case_id: str
    values: dict[str, int]
    kernel: Path
    reference: Path
    root: Path
    task: Task | None = None

    @property
    def case_name(self) -> str:
        """AccelOpt's name of the case: the operator and its values, sorted by name."""
        return case_name(self.name, self.values)

    @property
    def service_name(self) -> str:
        """AccelOpt's name of the kernel that a search starts from."""
        return f"{self.case_name}_ID0"

    def examined(self, text: str | None = None) -> KernelSource:
        """Return the kernel file, or ``text`` in its place. Raises UnreadableFileError: the file is gone."""
        return examine(
            self.kernel,
            read_text(self.kernel) if text is None else text,
            project_root=self.root,
            problem=self.reference.relative_to(self.root).as_posix(),
        )


@dataclass(frozen=True)
class Fault:
    """Something of a data set that cannot be run: what, where (``file``, 1-based ``line``), and what to do."""

    name: str
    file: Path
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        return f"{place}: {self.message}"


@dataclass(frozen=True)
class BenchmarkCases:
    """What can be run and what cannot."""

    ready: list[BenchmarkCase] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def case_name(name: str, values: dict[str, int]) -> str:
    return "_".join([name, *(f"{key}{values[key]}" for key in sorted(values))])


def own_cases(names: list[str], dialect: NkiDialect = "beta1") -> BenchmarkCases:
    """Return our own tasks at their published sizes.

    Raises:
        ValueError: there is no task of a name.
    """
    from nkibench.task import chosen

    cases = BenchmarkCases()
    for task in chosen(names):
        if dialect not in task.dialects:
            message = f"{task.name} has no kernel in the dialect {dialect}."
            cases.faults.append(Fault(task.name, task.folder, message))
            continue
        cases.ready.append(
            BenchmarkCase(
                task.name,
                "0",
                values=task.values,
                kernel=task.kernel(dialect),
                reference=task.reference,
                root=task.folder,
                task=task,
            )
        )
    return cases


def published_task(name: str) -> Task | None:
    """Return our task of an operator's name, for its published peak."""
    return tasks().get(name)
