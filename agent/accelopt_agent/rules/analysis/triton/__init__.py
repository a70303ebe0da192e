"""Reads a Triton kernel for the rules: launches, autotune configs, pointers, sizes that blocks divide."""
