"""What the project promises about real GPUs, measured on one: ``accelopt bench device``.

Not yet run on a device: tested with stand-ins, and on machines without one, where every part says what it lacks.
"""

#: The parts, in the order in which they are measured.
PARTS = ("worker", "timing", "estimates", "tricks", "facts", "evaluators")
