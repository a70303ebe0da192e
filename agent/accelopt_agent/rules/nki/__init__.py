"""Rules for the Beta 1 dialect (``neuronxcc.nki``). Every module is one rule with a function ``rewrites``."""
