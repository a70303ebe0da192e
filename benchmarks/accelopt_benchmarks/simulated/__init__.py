"""A simulated team of models behind a real server on the loopback, and recordings of what it answered."""
