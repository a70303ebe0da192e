"""Measurements on a real GPU against the project's goals: ``accelopt bench device``.

Not yet run on a device: tested with stand-ins, and on machines without one, where every part says what it lacks.
"""

#: The parts, in the order in which they are measured.
PARTS = ("worker", "timing", "estimates", "tricks")
