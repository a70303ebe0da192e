"""Commands with a home of their own."""

from support.command import accelopt, home  # noqa: F401  (fixtures)
