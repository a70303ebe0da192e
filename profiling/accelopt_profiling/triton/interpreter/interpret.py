"""Run chosen programs of a captured launch on the CPU tensors that stand in for device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton.language as tl

from accelopt_profiling.ran import RunRecorder
from accelopt_profiling.triton.interpreter.batches import Batches
from accelopt_profiling.triton.interpreter.counting import OperationCounter
from accelopt_profiling.triton.interpreter.coverage import SampleCoverage
from accelopt_profiling.triton.interpreter.language import Language
from accelopt_profiling.triton.interpreter.loops import LoopLimit
from accelopt_profiling.triton.interpreter.memory_bounds import LaunchMemory, regions_of
from accelopt_profiling.triton.interpreter.memory_operations import MemoryBuilder
from accelopt_profiling.triton.interpreter.rewrite import rewrite
from accelopt_profiling.triton.interpreter.sampling import ProgramId
from accelopt_profiling.triton.launch import CapturedLaunch
from accelopt_profiling.triton_adapter.interpreter import (
    Semantic,
    TensorHandle,
    make_descriptor,
    pointer_type,
)
from accelopt_profiling.triton_adapter.runtime import warm_up


def named_arguments(launch: CapturedLaunch) -> dict[str, Any]:
    """Return a launch's arguments by the names of the kernel's parameters."""
    return dict(zip(launch.fn.arg_names, launch.args, strict=False))


class Interpreter:
    """A builder and its patches of ``triton.language``, reused for all launches of a process."""

    def __init__(self, builder: MemoryBuilder | None = None) -> None:
        self.builder = MemoryBuilder() if builder is None else builder
        self.semantic = Semantic(self.builder)
        self.recorder = RunRecorder()
        self._bodies: dict[Any, Callable[..., Any]] = {}
        self.language = Language(self.builder, self.semantic, self.body)

    def prepare(self) -> None:
        """Build the patches and import what Triton and NumPy import late, so that the first launch need not."""
        self.language.build()
        np.unique(np.zeros(2))
        np.random.default_rng(0)
        warm_up()

    def run(
        self,
        launch: CapturedLaunch,
        programs: Sequence[ProgramId],
        *,
        counter: OperationCounter | None = None,
        coverage: SampleCoverage | None = None,
        memory: LaunchMemory | None = None,
        loops: LoopLimit | None = None,
    ) -> LaunchMemory:
        """Interpret ``programs`` and return the memory with the accesses that went out of bounds.

        They are run one after another or, where the result is the same and nothing is counted, side by side. With
        ``loops`` only some iterations of long loops are run: for the counts, where values do not matter.

        Raises:
            Exception: whatever the kernel's own code raises; ``UnsupportedOperationError`` for what cannot run here.
        """
        builder = self.builder
        memory = memory if memory is not None else LaunchMemory(regions_of(named_arguments(launch)))
        builder.counter, builder.coverage = counter, coverage
        builder.loops = loops or LoopLimit()
        with self.launched(launch, memory) as call:
            if counter is None and (coverage is None or coverage.side_by_side):
                programs = Batches(builder, call, coverage).run(programs)
            for program in programs:
                builder.set_grid_idx(*program)
                if coverage is not None:
                    coverage.begin_program()
                if counter is not None:
                    counter.begin_program()
                call()
                if coverage is not None:
                    coverage.end_program()
                if counter is not None and counter.enabled:
                    counter.end_program()
        return memory

    @contextmanager
    def launched(self, launch: CapturedLaunch, memory: LaunchMemory) -> Iterator[Callable[[], None]]:
        """Give a function that runs the kernel's body for the programs that the builder is set to."""
        builder = self.builder
        builder.memory, builder.file = memory, launch.file
        builder.set_grid_dim(*launch.grid)
        with self.language.scope(), np.errstate(all="ignore"):
            body = self.body(launch.fn)
            constexprs = {p.name for p in launch.fn.params if p.is_constexpr}
            values = {
                n: a if n in constexprs else self.convert(n, a) for n, a in named_arguments(launch).items()
            }
            yield lambda: body(**values)

    def body(self, fn: Any) -> Callable[..., Any]:
        """Return the rewritten body of a JITFunction."""
        body = self._bodies.get(fn.fn)
        if body is None:
            body, scope = rewrite(
                fn,
                lambda value: self.semantic.to_tensor(value, check_type=False),
                self.language.replacement,
                self.recorder,
            )
            scope.setdefault("range", self.language.loop)
            self._bodies[fn.fn] = body
        return body

    def convert(self, name: str, value: Any) -> Any:
        """Turn a launch argument into the tensor that the body sees.

        ``name`` is the origin of its pointers.
        """
        if isinstance(value, bool):
            return _scalar(np.array([value]), tl.int1)
        if isinstance(value, int):
            kind, wide = (np.int32, tl.int32) if -(1 << 31) <= value < 1 << 31 else (np.int64, tl.int64)
            return (
                _scalar(np.array([value], kind), wide)
                if value < 1 << 63
                else _scalar(np.array([value], np.uint64), tl.uint64)
            )
        if isinstance(value, float):
            return _scalar(np.array([value], np.float32), tl.float32)
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            return self._descriptor(name, value)
        if hasattr(value, "data_ptr"):
            kind = pointer_type(value)
            address = np.array([value.data_ptr()], np.uint64)
            return tl.tensor(TensorHandle(address, kind, {"origin": name}), kind)
        if isinstance(value, tuple):
            parts = [self.convert(f"{name}[{i}]", v) for i, v in enumerate(value)]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def _descriptor(self, name: str, value: Any) -> Any:
        shape, strides = (
            [self.convert(name, n) for n in numbers] for numbers in (value.shape, value.strides[:-1])
        )
        return make_descriptor(
            self.semantic, value, base=self.convert(name, value.base), shape=shape, strides=strides
        )


def _scalar(data: Any, kind: Any) -> Any:
    return tl.tensor(TensorHandle(data, kind), kind)
