"""The ``nki`` dialect (NKI 0.3 to 0.7, Neuron SDK 2.29 to 2.33): its names, over the emulator's core.

Instructions take their destination as the first argument, tensors are indexed with slices, view methods and ``.ap``.
Covered: the functions of ``operations.json`` that name what computes them, the view methods of ``tensor.NkiTensor``.
Not covered: random numbers, and views that reinterpret the bits of a tensor that is no whole input.
"""
