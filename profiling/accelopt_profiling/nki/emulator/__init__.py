"""One emulated NeuronCore: its memory, its limits, and the execution of single instructions on tiles."""
