"""What a check may take: every bound on how much is drawn, run, repeated and compiled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GateBudget:
    """Sizes are in bytes, times in seconds, and work in elements that interpreting launches computes (see
    ``interpreter.work``), so that no verdict depends on a clock. The figures are our choice.

    Inputs of up to ``large_bytes`` are small: where the main ones are larger, probes of values use the largest further
    shape that is small, since values are more than shapes can bring out at any size. ``input_bytes`` bounds the inputs
    of all cases together, ``result_bytes`` what the reference returns for them, of which the steps keep four times as
    much in files; later cases beyond are left out. ``kept_bytes`` of outputs are held to see whether any two share
    memory.

    Interpreting the first Triton case whole may take ``interpret_work`` before only some of its programs are, any other
    case a quarter; a launch of a fortieth is interpreted whole in any case. One call may take ``most_work``, some forty
    seconds on two cores: a candidate may need so much more than the original. ``whole_cases`` may be interpreted whole
    though only a part was planned.

    Calls on data seen before are ``repeats``, fewer where they take more than ``repeat_work`` together, and
    ``least_repeats`` in any case, since fewer do not show what counts calls; ``often`` more are made whose launches do
    nothing, for up to ``often_seconds`` of processor time, as host code may take long. ``configurations`` of
    autotuners run on changed values; ``compiled`` kinds of launches are compiled, and as many configurations until one
    can be launched. ``device_draws`` are run on the host's device, which compiles the kernel anew for each.

    All cases of a candidate together get ``all_cases`` times what its limits say of one; by the clock each step may
    take ``busy`` times longer, since a case's own limit is processor time. The problem's own steps get
    ``problem_seconds`` at least, the device's ``device_seconds``. Calls at far sizes are ended, and tell nothing, where
    they touch more than ``far_bytes`` or take more than ``far_seconds``.
    """

    large_bytes: int = 8 << 20
    input_bytes: int = 512 << 20
    result_bytes: int = 7 << 29
    kept_bytes: int = 64 << 20
    interpret_work: int = 4_000_000_000
    most_work: int = 16_000_000_000
    whole_cases: int = 6
    repeats: int = 24
    repeat_work: int = 100_000_000
    least_repeats: int = 3
    often: int = 2000
    often_seconds: float = 0.1
    configurations: int = 40
    compiled: int = 16
    device_draws: int = 6
    all_cases: int = 5
    busy: int = 4
    far_bytes: int = 2 << 30
    far_seconds: float = 20.0
    problem_seconds: float = 300.0
    device_seconds: float = 1200.0

    def case_work(self, index: int) -> int:
        """Return the work up to which a case is interpreted whole: there are some twenty calls of all but the first."""
        return self.interpret_work if index == 0 else self.interpret_work // 4

    @property
    def small_work(self) -> int:
        """Work up to which a launch is interpreted whole, also where its case is not."""
        return self.interpret_work // 40

    @property
    def shared_work(self) -> int:
        """Work beyond which a share of the first case is so small that it may tell too little."""
        return 4 * self.interpret_work

    def calls(self, work: int | None) -> int:
        """Return how many calls on data seen before are made, where one takes ``work``; None where nobody counts."""
        if work is None:
            return self.repeats
        return min(self.repeats, max(self.least_repeats, self.repeat_work // max(1, work)))
