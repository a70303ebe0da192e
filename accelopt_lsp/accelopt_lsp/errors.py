"""Errors that are shown to a person as they are: what happened, to what, what to do next."""

from __future__ import annotations


class UserError(Exception):
    """Something expected went wrong, such as wrong input or a setting that cannot be used."""


class HostUnavailableError(UserError):
    """The host cannot be reached. Work that needs no host goes on."""
