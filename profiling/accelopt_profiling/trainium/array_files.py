"""Arrays between this process and a program that the Neuron SDK's Python runs, which has a copy of this file beside it.

NumPy's files do not know the types of ``ml_dtypes``: those are saved as the integers of their size, and named.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def save_array(array: Any, path: Path) -> dict[str, str]:
    """Save an array and return where."""
    import numpy

    extended = array.dtype.kind == "V" and array.dtype.fields is None
    plain = array.view(f"u{array.dtype.itemsize}") if extended else array
    numpy.save(path, plain, allow_pickle=False)
    return {"array": str(path), **({"dtype": array.dtype.name} if extended else {})}


def load_array(saved: Mapping[str, str]) -> Any:
    """Load what ``save_array`` saved. Raises OSError, ValueError, KeyError: the file is not as described."""
    import numpy

    array = numpy.load(saved["array"], allow_pickle=False)
    if "dtype" not in saved:
        return array
    import ml_dtypes

    if not hasattr(ml_dtypes, saved["dtype"]):
        raise ValueError(f"ml_dtypes has no {saved['dtype']!r}")
    return array.view(getattr(ml_dtypes, saved["dtype"]))
