"""Moves kernels of NKI's Beta 1 (``neuronxcc.nki``) to today's NKI."""
