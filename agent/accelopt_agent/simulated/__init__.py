"""A proposer with stated skill in the place of a model, to compare search strategies without one."""
