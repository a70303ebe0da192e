"""The gate's files in the job's folder: one folder for each case, and the problem's files while they are needed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelopt_profiling.comparison.saved_values import load_values
from accelopt_profiling.folder_tree import empty_tree, remove_tree
from accelopt_profiling.gate.step_schemas import CaseCall
from accelopt_profiling.jobs import JobFiles, StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.problem import ProblemError
from accelopt_profiling.source_text import encode_source
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.project_modules import leave_project
from accelopt_profiling.worker.sandbox_root import WRITABLE
from accelopt_profiling.worker.usercode import enter_sources, user_errors

#: Below the folder ``gate``: the tolerance that the problem states.
TOLERANCE_FILE = "tolerance.json"
#: Below the folder ``gate``, until the candidate's process has read it: how much of each case is interpreted.
PLAN_FILE = "plan.json"
#: Below a case's folder: the candidate's model kept the parameters that it was built with.
INITIAL_FILE = "initial"
#: The parameters and buffers of the reference's model.
PARAMETERS = "parameters"
#: The first part of the names of folders with outputs in a further configuration of an autotuner.
CONFIGURATION = "configuration"
#: The folder, below that of a case, of a call of which only the launches are looked at.
WIDE = "wide"
#: Where a folder of outputs has a text about the run.
ABOUT = "about.txt"


def case_folder(context: StepContext, index: int) -> Path:
    """Return the folder of one case; below it ``inputs``, ``arguments``, ``outputs``, ``again``,
    ``expected``, ..."""
    return context.folder / "gate" / str(index)


def drawn_cases(context: StepContext, count: int) -> list[int]:
    """Return which of ``count`` planned cases were drawn and not left out since."""
    return [index for index in range(count) if (case_folder(context, index) / "call").is_dir()]


def saved_call(context: StepContext, index: int) -> CaseCall:
    """Return the call of a drawn case."""
    return from_plain(CaseCall, load_values(case_folder(context, index) / "call")[0])


def own_check_of(context: StepContext, count: int) -> str:
    """Return the check of the original file's own that failed when its calls were recorded; "" where none did."""
    drawn = drawn_cases(context, count)
    return saved_call(context, drawn[0]).call.own_check if drawn else ""


def saved_arguments(folder: Path) -> list[Any]:
    """Load the arguments of the case of that ``folder`` into new memory."""
    return load_values(folder / ("arguments" if (folder / "arguments").is_dir() else "inputs"))


def finished(raw: str) -> str:
    """Return where the outputs of ``raw`` lie once the problem has brought them into its layout."""
    return "finished" if raw == "outputs" else f"finished {raw}"


def beside(raw: str) -> str:
    """Return where the original's outputs lie of a call that was made in the way of ``raw``."""
    return f"original {raw}"


@contextmanager
def problem_files(context: StepContext, source: JobFiles) -> Iterator[StepContext]:
    """Keep the problem's files in a fresh folder while its process needs them, and import them from there only.

    The files that the candidate's process saw are left out of the import path: it may have changed them. The
    folder is gone before the next step starts, so that a candidate cannot read its reference there.
    """
    leave_project()
    forget_writings(context)
    root = Path(tempfile.mkdtemp(prefix="problem-", dir=context.folder))
    try:
        for name, text in source.files.items():
            file = (root / "src" / name).resolve()
            if not file.is_relative_to(root.resolve() / "src"):
                raise StepFailedError(
                    StepError("unsupported", f"The source path {name} leaves the job's folder.")
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(encode_source(text) if file.suffix == ".py" else text.encode())
        own = replace(context, folder=root, source=source)
        enter_sources(own)
        yield own
    finally:
        remove_tree(root)


def forget_writings(context: StepContext) -> None:
    """Remove what the candidate wrote where it may: none of it shall be imported or read by what comes later."""
    for part in WRITABLE:
        empty_tree(context.folder / part)


def forget_requests(context: StepContext) -> None:
    """Remove what the worker wrote down to start the steps: it holds the seeds and the problem's files."""
    for file in context.folder.glob("request-*.json"):
        file.unlink(missing_ok=True)


@contextmanager
def problem_errors(context: StepContext, doing: str) -> Iterator[None]:
    """Turn errors of the problem's code into step errors that name the problem: no candidate is blamed for them."""
    try:
        with user_errors(context, doing):
            yield
    except StepFailedError as failed:
        if failed.error.code in ("user-error", "exited"):
            raise StepFailedError(replace(failed.error, code="problem-raised")) from failed
        raise
    except ProblemError as error:
        raise StepFailedError(StepError(error.code, error.message, error.file, error.line)) from error
