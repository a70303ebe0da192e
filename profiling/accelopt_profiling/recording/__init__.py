"""Record the kernel launches of a test, a benchmark or a program as problems of the kernels' files.

``command.py`` runs the command; ``observer.py`` and what it uses run in the command's own Python, with what is
installed there: Python 3.10, torch and Triton.
"""
