"""The ``nki`` dialect (NKI 0.3 to 0.7, Neuron SDK 2.29 to 2.33): its names, over the emulator's core.

Instructions take their destination as the first argument, tensors are indexed with slices, view methods and ``.ap``.
Covered: the ``nki.isa`` functions of ``isa.names()``, the ``nki.language`` names of ``language.names()``, the view
methods of ``tensor.NkiTensor``. What differs between the versions stands in ``versions.json``. Not covered: the
microscaling formats (``nc_matmul_mx``, ``quantize_mx``), communication between cores (``sendrecv``,
``core_barrier``), random numbers, and views that reinterpret a tensor's bits.
"""
