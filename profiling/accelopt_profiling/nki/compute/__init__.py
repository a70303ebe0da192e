"""Computes what instructions produce, after the kernel's Python has run: steps, copy elision, worker threads."""
