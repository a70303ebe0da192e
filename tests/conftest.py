"""For all tests: none says how fast this machine is, as Hypothesis's deadline would on a busy one."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
