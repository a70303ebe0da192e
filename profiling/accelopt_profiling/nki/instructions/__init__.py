"""The instructions of ``nki.isa``, each written once, in today's form: with the destination as ``dst``."""
