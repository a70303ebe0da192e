"""Seed every generator a problem may draw from."""

from __future__ import annotations

import random
import sys


def seed_everything(seed: int) -> None:
    """Seed ``random``, and NumPy and torch where they are loaded. ``seed`` is below 2**63."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
