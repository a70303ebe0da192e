"""Implements ``accelopt problem``: infers inputs for a file's kernels, and writes them down as a problem file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import host_option, json_option, kernel_file, target_option
from accelopt_lsp.cli.terminal import err, print_json
from accelopt_lsp.resources import open_host, read_source, settings_for, targets_for
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_lsp.settings.load import Settings
    from accelopt_profiling.kernel_file import KernelFile
    from accelopt_profiling.kernels import Kernel
    from accelopt_profiling.measurement import Dialect
    from accelopt_profiling.problems.inference.inferred import InferredProblem


@click.command()
@kernel_file()
@click.option(
    "--kernel", metavar="NAME", help="The kernel to write it for; the first that is launched otherwise."
)
@target_option
@host_option
@json_option
def problem(file: Path, kernel: str | None, target: str | None, host: str | None, as_json: bool) -> None:
    """Write FILE_problem.py: inputs with which its kernels run.

    The inputs are inferred from the source, tried and repaired in the sandbox; what was inferred from what stands
    beside each. No reference is guessed: results are not checked until you add one. A file that
    exists is not overwritten.
    """
    from accelopt_profiling.examination import examine
    from accelopt_profiling.problems.catalogue import layout_of

    settings = settings_for(file, {"host": host})
    examined = examine(file.resolve(), read_source(file), project_root=settings.project_root)
    chosen = _kernels(file, examined, kernel)
    path = file.with_name(f"{file.stem}_problem.py")
    if path.exists():
        raise _exists(path)
    known = examined.problem.ref
    # a Triton file that runs itself still gets one: the run has no reference, and where its tensors come from is told
    if known is not None and (not layout_of(known).runs_itself or chosen[0].dialect == "nki"):
        if as_json:
            print_json({"path": None, "kernel": chosen[0].name, "problem": known.origin})
        else:
            say(printable(f"{file} has a problem already ({known.origin}); nothing was written."))
        return
    inferred = asyncio.run(_infer(settings, examined, chosen, targets_for(settings, target, chosen)))
    try:
        with path.open("x", encoding="utf-8") as written:
            written.write(inferred.text)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise wrong_input(f"{path} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json(
            {
                "path": str(path), "kernel": chosen[0].name, "entry": inferred.entry, "launched": inferred.launched,
                "complete": inferred.complete, "remaining": inferred.remaining,
            }
        )  # fmt: skip
    else:
        say(printable(f"Wrote {path}. {inferred.outcome} Next: accelopt profile {file}"))


def _kernels(file: Path, examined: KernelFile, name: str | None) -> list[Kernel]:
    """Return the kernels of one dialect to write a problem for, or the one of that name."""
    for finding in examined.discovery.findings:
        if finding.severity == "error":
            raise wrong_input(f"{file}:{finding.line}: {finding.message}")
    if not examined.kernels:
        raise CommandError(Exit.NO, f"{file} has no kernel that is launched.")
    if name is None:
        return [k for k in examined.kernels if k.dialect == examined.kernels[0].dialect]
    chosen = examined.kernel(name)
    if chosen is None:
        names = ", ".join(k.name for k in examined.kernels)
        raise wrong_input(f"{file} has no kernel {name!r}; it has {names}.")
    return [chosen]


def _exists(path: Path) -> Exception:
    return wrong_input(f"{path} exists already; complete it there.")


async def _infer(
    settings: Settings, file: KernelFile, kernels: list[Kernel], targets: dict[Dialect, str]
) -> InferredProblem:
    from accelopt_profiling.problem_inference import infer_problem

    host = open_host(settings)
    try:
        with err().status(f"inferring inputs for {printable(file.path.name)} on {host.name} ..."):
            return await infer_problem(host, file, kernels, targets[kernels[0].dialect], settings.job_limits)
    finally:
        await host.close()
