"""Runs NKI kernels without the Neuron SDK and estimates their time.

Layers, each importing only those before it: ``operations`` (what NKI's functions are, as data), ``data``, ``compute``
(values), ``emulator`` (one NeuronCore), ``instructions`` (each one once), ``frontend`` (names common to both dialects),
``replay`` (loops), the dialects ``beta1`` and ``current``, ``install`` (the stand-in modules). ``time_model`` reads a
trace and needs ``operations``, ``data`` and ``compute`` only; ``profile`` puts all of it together.
"""
