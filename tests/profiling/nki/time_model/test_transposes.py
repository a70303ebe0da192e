"""What a transpose costs on VectorE and by DMA, and what is advised about one."""

from __future__ import annotations

import numpy as np
import pytest
from support import nki_current_source, nki_source
from support.nki_current_source import TRN2

from accelopt_profiling.nki.data.memory_space import CoreLimits
from accelopt_profiling.nki.report import cost_findings
from accelopt_profiling.nki.time_model.estimate import estimate
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.nki.time_model.step import engine_ns

A = np.random.default_rng(2).standard_normal((128, 128), dtype=np.float32)
ON_VECTOR = """
out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
nl.store(out, nisa.nc_transpose(nl.load(a), engine=nisa.vector_engine))
return out
"""


def test_beta_1_transposes_whole_tiles_on_vector_engine_as_its_compiler_does() -> None:
    outcome = nki_source.run(ON_VECTOR, A, limits=TRN2)
    assert outcome.fault is None
    np.testing.assert_array_equal(outcome.result, A.T)
    (turned,) = [i for i in outcome.trace.instructions if i.opcode == "nc_transpose"]
    assert engine_ns(turned, "VectorE", hardware("trn2")) == pytest.approx(3100, rel=0.05)  # measured: 3.1 us


def test_todays_dialect_transposes_on_vector_engine_what_is_documented() -> None:
    body = "x, y = sbuf(128, 128), sbuf(128, 128)\nnisa.dma_copy(x, a)\n"
    body += "nisa.nc_transpose(y, x, engine=nisa.engine.vector)"
    fault = nki_current_source.run(body, A).fault
    assert fault is not None
    assert fault.code == "capacity"


BY_DMA = """
out = nl.ndarray((64, 128, 128), dtype=nl.{dtype}, buffer=nl.shared_hbm)
for i in range(64):
    x = sbuf(128, 128, dtype=nl.{dtype})
    {load}
    nisa.dma_copy(out[i], x)
return out
"""


@pytest.mark.parametrize(
    ("load", "dtype", "limits", "advice"),
    [
        ("nisa.dma_transpose(x, a[i])", "float32", TRN2, "use nisa.nc_transpose"),
        ("nisa.dma_transpose(x, a[i])", "bfloat16", TRN2, "make the free dimension of the tile larger"),
        ("nisa.dma_transpose(x, a[i])", "bfloat16", CoreLimits(), "use nisa.nc_transpose"),
        ("nisa.dma_copy(x, a[i])", "float32", TRN2, "make the free dimension of the tile larger"),
    ],
)
def test_small_pieces_of_a_transpose_are_not_advised_to_be_larger_tiles(
    load: str, dtype: str, limits: CoreLimits, advice: str
) -> None:
    import ml_dtypes

    array = np.zeros((64, 128, 128), getattr(ml_dtypes, dtype, dtype))
    outcome = nki_current_source.run(
        BY_DMA.format(load=load, dtype=dtype), array, mode="trace", limits=limits
    )
    assert outcome.fault is None
    target = "trn2" if limits == TRN2 else "trn1"
    findings = cost_findings(estimate(outcome.trace, hardware(target)))
    (finding,) = [
        f for f in findings if f.code == "small-dma" and f.line == nki_current_source.FIRST_LINE + 3
    ]
    assert advice in finding.message


def test_two_bytes_are_transposed_by_dma_far_faster_than_four() -> None:
    import ml_dtypes

    times = []
    for dtype in ("float32", "bfloat16"):
        body = BY_DMA.format(load="nisa.dma_transpose(x, a[i])", dtype=dtype)
        array = np.zeros((64, 128, 128), getattr(ml_dtypes, dtype, dtype))
        trace = nki_current_source.run(body, array, mode="trace").trace
        times.append(estimate(trace, hardware("trn2")).us)
    assert times[0] > 3 * times[1]
