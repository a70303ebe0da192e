"""What public kernels still write of earlier releases: placed tiles, annotations, a copy that names its dtype."""

from __future__ import annotations

import nki_current_source
import nki_source
import numpy as np

A = np.random.default_rng(5).standard_normal((128, 64), dtype=np.float32)

PLACED = """
out = nl.ndarray((128, 64), dtype=np.float32, buffer=nl.shared_hbm)
tiles = nl.ndarray((2, nl.par_dim(128), 64), dtype=np.float32, buffer=nki.compiler.sbuf.mod_alloc(base_addr=0))
for i in nl.affine_range(2):
    tiles[i] = nl.load(a)
nl.store(out, nl.add(tiles[0], tiles[1]))
return out
"""


def test_a_tile_that_the_kernel_places_is_placed_by_the_emulator_which_says_so() -> None:
    outcome = nki_source.run(PLACED, A)
    assert outcome.fault is None
    np.testing.assert_array_equal(outcome.result, A + A)
    ((code, line, severity, message),) = [(f.code, f.line, f.severity, f.message) for f in outcome.findings]
    assert (code, line, severity) == ("unsupported", nki_source.FIRST_LINE + 1, "information")
    assert "nl.sbuf are placed by their lifetime" in message


def test_hints_to_the_compiler_and_annotations_change_nothing() -> None:
    head = nki_source.HEAD.replace("@nki.jit", "@nki.compiler.skip_middle_end_transformations\n@nki.jit")
    head = head.replace("{arguments}", "{arguments}: nki.tensor")
    assert nki_source.run("return a", A, head=head).fault is None


COPY = """
out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
x, y = sbuf(128, 64), sbuf(128, 64)
nisa.dma_copy(x, a)
nisa.tensor_copy(dst=y, src=x, dtype=nl.{dtype})
nisa.dma_copy(out, y)
return out
"""


def test_a_copy_may_repeat_the_dtype_of_its_destination() -> None:
    outcome = nki_current_source.run(COPY.format(dtype="float32"), A)
    np.testing.assert_array_equal(outcome.result, A)
    line = nki_current_source.FIRST_LINE + 3
    assert [(f.code, f.line, f.severity) for f in outcome.findings] == [("deprecated", line, "information")]


def test_a_copy_may_not_name_another_dtype() -> None:
    fault = nki_current_source.run(COPY.format(dtype="bfloat16"), A).fault
    assert fault is not None
    assert (fault.code, fault.line) == ("unsupported", nki_current_source.FIRST_LINE + 3)
    assert "it copies into dst, which is float32" in fault.message
