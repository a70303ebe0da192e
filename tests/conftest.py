"""For all tests: none says how fast this machine is, as Hypothesis's deadline would on a busy one."""

import os
import sys

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# Python keeps what it compiled, whatever the environment says: the tests start hundreds of processes, and each would
# compile the project anew. The workers of pytest-xdist and all they start inherit this.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
