"""Imported by every Python that the record command starts: watches its launches, then runs the user's own
``sitecustomize``, which this one hides.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _package() -> None:
    """Import ``accelopt_profiling`` from where it lies, without its neighbours."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spec = importlib.util.spec_from_file_location(
        "accelopt_profiling", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["accelopt_profiling"] = module
    spec.loader.exec_module(module)


def _start() -> None:
    if sys.version_info < (3, 10):  # noqa: UP036 - any Python that the command starts
        version = ".".join(map(str, sys.version_info[:2]))
        sys.stderr.write(
            f"accelopt record: {sys.executable} is Python {version}; launches are watched from 3.10 on.\n"
        )
        return
    if "accelopt_profiling" not in sys.modules:
        _package()
    from accelopt_profiling.recording.start import start

    start(os.environ)


def _hidden() -> None:
    """Run the ``sitecustomize`` that would have been imported without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("ACCELOPT_RECORD_FOLDER"):
    _start()
_hidden()
