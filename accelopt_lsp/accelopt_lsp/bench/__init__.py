"""The project's own measurements: what ``accelopt bench self`` prints and the README quotes."""
