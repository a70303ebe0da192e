"""What NKI's functions are, as data: the one place that names them and their parameters."""
