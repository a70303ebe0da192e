"""What AWS's pages say of NKI's functions, each with statements, and the values or that they are forbidden.

The values are written from the pages of NKI 0.6 (SDK 2.32: nki.isa, nki.language, nki.api.shared, the release notes),
not from what the emulator computes. Each module lists the rules of a group of functions.
"""

from __future__ import annotations

from accelopt_benchmarks.nki.page_rules import (
    collectives,
    isa_choices,
    isa_copies,
    isa_cores,
    isa_details,
    isa_elements,
    isa_engines,
    isa_matrix,
    isa_memory,
    isa_products,
    isa_scalar_engine,
    isa_searches,
    isa_tensors,
    language_control,
    language_elements,
    language_tensors,
    language_tiles,
    random,
)
from accelopt_benchmarks.nki.page_rules.rule import Array, PageRule

__all__ = ["RULES", "Array", "PageRule"]

_MODULES = (
    isa_elements,
    isa_products,
    isa_searches,
    isa_copies,
    isa_scalar_engine,
    isa_tensors,
    isa_choices,
    isa_matrix,
    isa_memory,
    isa_cores,
    isa_engines,
    isa_details,
    language_elements,
    language_control,
    language_tensors,
    language_tiles,
    random,
    collectives,
)
RULES = tuple(rule for module in _MODULES for rule in module.RULES)
