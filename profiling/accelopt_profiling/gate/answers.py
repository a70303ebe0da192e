"""One case as it lies in the job's folder: the inputs, what was expected, and what was returned."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from accelopt_profiling.gate.compare import Array, Comparison, compare, compare_exact
from accelopt_profiling.gate.decode import Leaf, read_leaves
from accelopt_profiling.gate.files import FINISHED
from accelopt_profiling.gate.long_sums import is_exact
from accelopt_profiling.gate.ties import name_equal_elements
from accelopt_profiling.gate.tolerance import Allowed, allowed
from accelopt_profiling.problems.problem import Tolerance


class Answers:
    """The expected values, those of the reference in the inputs' own precision (``native``) and the inputs. ``stated``
    is the tolerance that holds; it may be replaced. ``sums`` tells that the inputs are made for long sums.
    """

    def __init__(self, folder: Path, stated: Tolerance, sums: bool = False) -> None:
        self.folder, self.stated, self.sums = folder, stated, sums
        self.expected, self.native = read_leaves(folder / "expected"), read_leaves(folder / "native")
        self.nearby = [
            leaf if leaf is not None and leaf.floating else None for leaf in self._others("nearby")
        ]
        self.further = [None if leaf is None or leaf.floating else leaf for leaf in self._others("further")]
        self.inputs = read_leaves(folder / "inputs", others=True)

    def finite(self) -> bool:
        return all(is_finite(leaf) for leaf in [*self.expected, *self.native])

    def _others(self, name: str) -> list[Leaf | None]:
        """What the reference gives for other inputs, output by output; None where that is not known."""
        found = read_leaves(self.folder / name) if self.has(name) else []
        fits = len(found) == len(self.expected)
        return [
            found[n] if fits and found[n].shape == leaf.shape else None
            for n, leaf in enumerate(self.expected)
        ]

    def has(self, name: str) -> bool:
        return (self.folder / name).is_dir()

    def read(self, name: str) -> list[Leaf] | str:
        """What the candidate (or the original) returned under ``name``, in the reference's layout; why not otherwise: a
        candidate may write anything there.
        """
        finished = self.folder / FINISHED[name]
        try:
            return read_leaves(finished if finished.is_dir() else self.folder / name)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"The candidate's outputs cannot be read: {error}."

    def masks(self, name: str) -> dict[int, Array]:
        """Which elements of each output are known, where only a sample of the programs was run."""
        masks: dict[int, Array] = {}
        for file in (self.folder / name).glob("known-*.npy"):
            number = file.stem.removeprefix("known-")
            try:
                mask = np.load(file, allow_pickle=False)
            except (OSError, ValueError, EOFError):
                continue
            if number.isdigit() and isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
                masks[int(number)] = mask
        return masks

    def allowed(self, mine: Leaf, number: int, stated: Tolerance | None = None) -> Allowed:
        """What output ``number`` may be off by. Where it is an exact sum its own dtype alone counts."""
        dtypes = [leaf.dtype for leaf in self.inputs if leaf.floating and leaf.library != "number"]
        if self.sums and is_exact(self.expected[number].values, self.native[number].values):
            dtypes = []
        return allowed([*dtypes, mine.dtype], self.stated if stated is None else stated)

    def compare(self, values: Array, number: int, limit: Allowed, known: Array | None = None) -> Comparison:
        """Values against those that are expected of output ``number``. ``known`` marks the elements that were computed;
        the others are not held against the candidate.
        """
        theirs = self.expected[number]
        near = self.nearby[number]
        native = self.native[number].values
        mask = known if known is not None and known.shape == values.shape else None
        if theirs.floating and values.dtype.kind == "f":
            nearby = None if near is None else near.values
            return compare(values, theirs.values, native, limit, nearby, mask)
        further = self.further[number]
        arrays = [values, native, *([] if further is None else [further.values])]
        found = compare_exact(*(array if mask is None else np.where(mask, array, 0) for array in arrays))
        if found.fault and mask is None and name_equal_elements(values, native, self._floats()):
            return Comparison()
        return found

    def _floats(self) -> list[Array]:
        return [leaf.values for leaf in self.inputs if leaf.floating and leaf.library != "number"]

    def right(self, leaves: list[Leaf], masks: dict[int, Array] | None = None) -> Comparison | None:
        """The first output that is wrong; None where all are right. Forms must agree."""
        for number, leaf in enumerate(leaves):
            known = (masks or {}).get(number)
            comparison = self.compare(leaf.values, number, self.allowed(leaf, number), known)
            if comparison.fault:
                return comparison
        return None


def is_finite(leaf: Leaf) -> bool:
    return not leaf.floating or bool(np.isfinite(leaf.values).all())
