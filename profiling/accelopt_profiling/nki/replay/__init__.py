"""Replays the iterations of a loop from one that was recorded, without running the kernel's Python for each."""
