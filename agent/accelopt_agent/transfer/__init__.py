"""Proposes rewrites from memory: repeats accepted pairs on other kernels."""
