"""Time kernels on a GPU."""

#: What is said wherever times on GPUs are offered, until ``accelopt bench device`` has been run on one.
NOT_YET_RUN = "not yet run on a GPU"
