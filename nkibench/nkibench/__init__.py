"""The benchmark: tasks, peaks, other people's data sets, reports."""
