"""Kernel files of others profiled as they are: tutorials, Liger-Kernel, TritonBench."""
