"""Searches faster versions of one kernel: strategies, scheduling, validation, records, resumable runs."""
