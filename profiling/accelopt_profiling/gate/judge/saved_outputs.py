"""The saved inputs, expected values and outputs of one case, read from the job's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from accelopt_profiling.comparison.elements import Array
from accelopt_profiling.comparison.leaves import Leaf, read_leaves
from accelopt_profiling.comparison.outputs import ExpectedOutputs
from accelopt_profiling.comparison.ties import names_the_first
from accelopt_profiling.comparison.tolerance import Allowed, allowed
from accelopt_profiling.gate.case_files import PARAMETERS, finished
from accelopt_profiling.problems.problem import Tolerance


class SavedOutputs(ExpectedOutputs):
    """The expected values, those of the reference in the inputs' own precision (``native``) and the inputs. ``stated``
    is the tolerance that holds; it may be replaced. ``is_exact`` tells of expected and native values that an honest
    kernel finds them but for its output's rounding, ``settled`` that of equal elements the first is named wherever the
    reference does so.
    """

    def __init__(
        self,
        folder: Path,
        stated: Tolerance,
        is_exact: Callable[[Array, Array], bool] = lambda expected, native: False,
        settled: bool = False,
    ) -> None:
        super().__init__(self._saved, stated)
        self.folder, self.is_exact, self.settled = folder, is_exact, settled

    def _saved(self, name: str) -> list[Leaf] | None:
        return read_leaves(self.folder / name, others=name == "inputs") if self.has(name) else None

    def _may_name(self, values: Array, number: int, native: Array) -> bool:
        first = (
            self.settled and names_the_first(native, self._floats()) and self._original_names(number, native)
        )
        return not first and super()._may_name(values, number, native)

    def _original_names(self, number: int, native: Array) -> bool:
        """Check whether the original kernel, where it ran, names the same elements as the reference."""
        if not self.has("original"):
            return True
        leaves = self.read("original")
        if isinstance(leaves, str) or number >= len(leaves):
            return False
        return np.array_equal(leaves[number].values, native)

    def finite(self) -> bool:
        return all(is_finite(leaf) for leaf in [*self.expected, *self.native])

    def finite_elements(self) -> dict[int, Array]:
        """Return masks of the elements of each output that are finite floats, in either precision of the reference."""
        pairs = zip(self.expected, self.native, strict=True)
        return {
            number: np.isfinite(exact.values) & np.isfinite(native.values)
            if exact.floating and native.shape == exact.shape
            else np.zeros(exact.shape, bool)
            for number, (exact, native) in enumerate(pairs)
        }

    def parameters(self) -> list[Leaf]:
        """Return the parameters and buffers of the reference's model, where the case saved them."""
        return read_leaves(self.folder / PARAMETERS, others=True) if self.has(PARAMETERS) else []

    def has(self, name: str) -> bool:
        return (self.folder / name).is_dir()

    def read(self, name: str) -> list[Leaf] | str:
        """Read the outputs that the candidate (or the original) saved under ``name``, in the reference's layout. A
        string is the reason why they cannot be read: a candidate may write anything there.
        """
        brought = self.folder / finished(name)
        try:
            return read_leaves(brought if brought.is_dir() else self.folder / name)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"The candidate's outputs cannot be read: {error}."

    def masks(self, name: str) -> dict[int, Array]:
        """Return which elements of each output are known, where only a sample of the programs was run."""
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
        """Return the error that output ``number`` may have.

        Where it is an exact sum its own dtype alone counts.
        """
        if self.is_exact(self.expected[number].values, self.native[number].values):
            return allowed([mine.dtype], self.stated if stated is None else stated)
        return super().allowed(mine, number, stated)


def is_finite(leaf: Leaf) -> bool:
    return not leaf.floating or bool(np.isfinite(leaf.values).all())
