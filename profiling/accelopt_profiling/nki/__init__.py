"""Runs NKI kernels without the Neuron SDK and estimates their time.

Layers, each importing only those before it: ``data``, ``compute`` (values), ``emulator`` (one NeuronCore), ``frontend``
(names common to both dialects), ``replay`` (loops), the dialects ``beta1`` and ``current``, ``install`` (the stand-in
modules). ``time_model`` reads a trace and needs ``data`` and ``compute`` only; ``profile`` puts all of it together.
"""
