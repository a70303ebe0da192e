"""Cost of running on a host, and candidates that survive killed workers."""
