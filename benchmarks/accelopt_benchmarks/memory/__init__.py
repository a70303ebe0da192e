"""Measures the memory: whether accepted edits carry over to other kernels, and what they save a search."""
