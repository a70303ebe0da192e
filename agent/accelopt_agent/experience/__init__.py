"""Experience for the roles of the model team: chooses what the memory knows about like kernels, and tells it."""
