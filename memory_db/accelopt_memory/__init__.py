"""The memory: what was learned. Slow-fast pairs, traps, runs and receipts in one SQLite file."""
