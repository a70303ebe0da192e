"""Names the folders of the checkout that the benchmarks read."""

from __future__ import annotations

from pathlib import Path

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
