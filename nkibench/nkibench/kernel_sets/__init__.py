"""Kernels for the tasks of KernelBench and FlashInfer-Bench: read, profiled, checked and optimized."""
