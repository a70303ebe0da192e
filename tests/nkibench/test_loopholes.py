"""What NKIBench's published gate lets through, or refuses for no reason, and ours does not."""

import asyncio
from pathlib import Path

import pytest
from support.shared_host import SharedWorkers

from nkibench.case import BenchmarkCase
from nkibench.measuring import judge
from nkibench.task import tasks

#: The tasks' sizes for these tests: large enough for the fault to show, small enough to take a second.
SIZES = {
    "adamw": {"M": 128, "N": 512},
    "bmm_softmax": {"B": 1, "M": 128, "K": 64, "N": 2048},
    "matmul": {"M": 128, "N": 512, "K": 512},
}


@pytest.fixture(scope="module")
def verdict(workers: SharedWorkers):
    """Judge a rewrite of a task's baseline at the test's sizes; ``changes`` are (old text, new text), ``answer`` takes
    the place of the reference's last line.
    """
    loop, host = asyncio.new_event_loop(), workers.host()

    def judged(folder: Path, name: str, *changes: tuple[str, str], tolerance=True, answer=None):
        task, sizes = tasks()[name], SIZES[name]
        reference = task.reference.read_text()
        for size, value in sizes.items():
            reference = reference.replace(f"\n{size} = {task.values[size]}\n", f"\n{size} = {value}\n")
        if answer is not None:
            reference = reference.replace("return lhs @ rhs", answer)
        start = reference.index("shapes = [")
        end = reference.index("tolerance = " if tolerance else "def ", start)
        (folder / "reference.py").write_text(reference[:start] + reference[end:])
        kernel = task.kernel("beta1").read_text()
        (folder / "kernel.py").write_text(kernel)
        for old, new in changes:
            assert kernel.count(old) == 1, old
            kernel = kernel.replace(old, new)
        subject = BenchmarkCase(name, "0", sizes, folder / "kernel.py", folder / "reference.py", folder, task)
        result, _ = loop.run_until_complete(judge(host, subject, "trn1", kernel))
        return result

    yield judged
    loop.close()


def codes(verdict):
    return {reason.code for reason in verdict.reasons}


WITHOUT_DECAY = (
    "            decay = nl.multiply(theta_tile, 1e-5, mask=inside)\n"
    "            decayed = nl.subtract(theta_tile, decay, mask=inside)\n",
    "            decayed = theta_tile\n",
)


@pytest.mark.slow
def test_adamw_is_accepted_as_it_is_and_refused_without_weight_decay(verdict, tmp_path):
    assert verdict(tmp_path, "adamw").accepted
    result = verdict(tmp_path, "adamw", WITHOUT_DECAY)
    assert not result.accepted
    assert codes(result) == {"wrong-result"}
    worst = max(
        o["comparison"]["relative"] for c in result.checks for o in c["outputs"] if c["case"] == "original"
    )
    assert worst < tasks()["adamw"].relative_tolerance  # so that the published gate lets it pass


@pytest.mark.slow
def test_adamw_from_a_checkout_whose_reference_states_no_tolerance(verdict, tmp_path):
    assert verdict(tmp_path, "adamw", tolerance=False).accepted
    assert codes(verdict(tmp_path, "adamw", WITHOUT_DECAY, tolerance=False)) == {"wrong-result"}


@pytest.mark.slow
def test_softmax_without_its_maximum_is_refused(verdict, tmp_path):
    assert verdict(tmp_path, "bmm_softmax").accepted
    result = verdict(tmp_path, "bmm_softmax", ("shifted = nl.subtract(logits, largest)", "shifted = logits"))
    assert not result.accepted
    passed = {check["case"] for check in result.checks if check["outcome"] == "passed"}
    assert "original" in passed  # it is right on ordinary inputs, which is all that the published gate draws


@pytest.mark.slow
def test_softmax_with_the_first_tiles_maximum_only_is_refused(verdict, tmp_path):
    first = "largest = nl.max(logits[i_m, j_n], axis=[1], keepdims=True)"
    result = verdict(tmp_path, "bmm_softmax", ("largest = nl.max(logits, axis=[1], keepdims=True)", first))
    assert not result.accepted


PRODUCT = "                total += nl.matmul(lhs_tile, rhs_tile)\n"
HALVES = """                lhs_high = nl.copy(lhs_tile, dtype=nl.bfloat16)
                rhs_high = nl.copy(rhs_tile, dtype=nl.bfloat16)
"""
LOW = """                lhs_low = nl.subtract(lhs_tile, lhs_high, dtype=nl.bfloat16)
                rhs_low = nl.subtract(rhs_tile, rhs_high, dtype=nl.bfloat16)
                total += nl.matmul(lhs_high, rhs_low)
                total += nl.matmul(lhs_low, rhs_high)
"""
HIGH = "                total += nl.matmul(lhs_high, rhs_high)\n"


@pytest.mark.slow
def test_compensated_low_precision_is_accepted_and_plain_low_precision_is_not(verdict, tmp_path):
    compensated = verdict(tmp_path, "matmul", (PRODUCT, HALVES + HIGH + LOW))
    assert compensated.accepted, compensated.reasons
    plain = verdict(tmp_path, "matmul", (PRODUCT, HALVES + HIGH))
    assert not plain.accepted
    assert codes(plain) == {"wrong-result"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("return (lhs @ rhs)[None]", "wrong-shape"),
        ("return (lhs @ rhs).astype(np.int64)", "wrong-dtype"),
        ("return lhs @ rhs, lhs", "wrong-count"),
    ],
)
def test_a_reference_of_another_rank_type_or_count_is_refused_with_the_reason(
    verdict, tmp_path, answer, code
):
    result = verdict(tmp_path, "matmul", answer=answer)
    assert not result.accepted
    assert code in codes(result)
