"""A preloaded parent learns which modules its children import."""

from __future__ import annotations

import os
import sys

from accelopt_profiling.worker.preloaded_parent import SharedImports


def test_a_parent_sees_what_a_child_imported() -> None:
    imports = SharedImports(["colorsys", "wave"])
    pid = os.fork()
    if pid == 0:
        sys.modules.pop("colorsys", None)
        sys.meta_path.insert(0, imports)
        import colorsys  # noqa: F401

        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert imports.seen(["colorsys", "wave"])
    assert not imports.seen(["wave"])
    assert not imports.seen([])
