"""Implements ``accelopt problem``: infers inputs for a file's kernels, and writes them down as a problem file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import host_option, json_option, kernel_file, target_option
from accelopt_lsp.cli.surface import call_service
from accelopt_lsp.cli.terminal import err, print_json
from accelopt_lsp.resources import read_file, settings_for, write_new
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_lsp.service.local import LocalService
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
    from accelopt_profiling.problems.catalogue import layout_of

    source = read_file(file, settings_for(file, {"host": host}), target, kernels=[kernel] if kernel else [])
    for finding in source.source.text_findings:
        if finding.severity == "error":
            raise wrong_input(f"{file}:{finding.line}: {finding.message}")
    chosen = source.kernels(kernel)
    path = file.with_name(f"{file.stem}_problem.py")
    if path.exists():
        raise wrong_input(f"{path} exists already; complete it there.")
    ref = source.source.problem.ref
    # a Triton file that runs itself still gets one: the run has no reference, and where its tensors come from is told
    if ref is not None and (not layout_of(ref).runs_itself or chosen[0].dialect == "nki"):
        if as_json:
            print_json({"path": None, "kernel": chosen[0].name, "problem": ref.origin})
        else:
            say(printable(f"{file} has a problem already ({ref.origin}); nothing was written."))
        return

    async def work(service: LocalService) -> InferredProblem:
        with err().status(f"inferring inputs for {printable(file.name)} on {source.settings.host} ..."):
            return await service.infer_problem(source, kernel)

    inferred = call_service(work)
    write_new(path, inferred.text)
    if as_json:
        print_json(
            {
                "path": str(path), "kernel": chosen[0].name, "entry": inferred.entry, "launched": inferred.launched,
                "complete": inferred.complete, "remaining": inferred.remaining,
            }
        )  # fmt: skip
    else:
        say(printable(f"Wrote {path}. {inferred.outcome} Next: accelopt profile {file}"))
