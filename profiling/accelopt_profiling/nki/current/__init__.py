"""The ``nki`` dialect (NKI 0.3 to 0.7, Neuron SDK 2.29 to 2.33): its names, over the emulator's core.

Instructions take their destination as the first argument, tensors are indexed with slices, view methods and ``.ap``.
Covered: the ``nki.isa`` functions of ``isa.names()``, the ``nki.language`` names of ``language.names()``, the view
methods of ``tensor.NkiTensor``. What differs between the versions stands in ``versions.json``. Not covered: random
numbers, and views that reinterpret the bits of a tensor that is no whole input.
"""
