"""From a trace to a time: costs of single instructions, residency in SBUF, a schedule over engines and queues."""
