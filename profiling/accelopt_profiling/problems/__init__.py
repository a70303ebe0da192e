"""Problems: inputs, a reference and tolerances for a kernel, found in one of seven ways and loaded in a child
process.

``find`` and ``found`` work on the editor's side, by syntax, and import nothing; ``load`` and the modules
named after the kinds (``module``, ``nkibench``, ``kernelbench``, ``flashinfer``, ``selfrun``) work in a child
process.
"""
