"""Names the folders of the checkout that the benchmarks read, and defines the option for the example kernels."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_lsp.cli.failures import wrong_input

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
#: Attacks on the gate with their negative controls, and the kernels and tricks for a GPU.
GATE_CORPUS, DEVICE_CORPUS = ROOT / "benchmarks" / "gate_corpus", ROOT / "benchmarks" / "device_corpus"
#: Our kernels for the operations whose times others published.
PUBLISHED_CORPUS = ROOT / "benchmarks" / "published_corpus"
#: Naive kernels and planted slowdowns, with their problems.
REWRITE_CORPUS = ROOT / "benchmarks" / "rewrite_corpus"
#: Slow-fast pairs made by hand, with other kernels that have the same fault.
MEMORY_CORPUS = ROOT / "benchmarks" / "memory_corpus"


examples_option = click.option(
    "--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="The folder of the example kernels."
)


def check_examples(folder: Path) -> None:
    """Raise a usage error where ``folder`` holds no examples."""
    if not (folder / "nki_silu.py").exists():
        raise wrong_input(f"{folder} has no nki_silu.py; give the project's examples with --examples.")
