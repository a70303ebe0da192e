"""What AWS's pages say of NKI's functions, each with statements, and the values or that they are forbidden.

The values are written from the pages of NKI 0.6 (SDK 2.32: nki.isa, nki.language, nki.api.shared, the release notes),
not from what the emulator computes. Each module lists the rules of a group of functions.
"""

from __future__ import annotations

from accelopt_benchmarks.nki.page_rules import (
    isa_elements,
    isa_products,
    isa_searches,
    language_control,
    language_elements,
    language_tensors,
    language_tiles,
)
from accelopt_benchmarks.nki.page_rules.rule import Array, PageRule

__all__ = ["RULES", "Array", "PageRule"]

RULES = (
    *isa_elements.RULES, *isa_products.RULES, *isa_searches.RULES, *language_elements.RULES, *language_control.RULES,
    *language_tensors.RULES, *language_tiles.RULES,
)  # fmt: skip
