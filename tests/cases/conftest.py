"""Desktops with applications of the tests' own."""

from tests.own_desktop import applications, desktop

__all__ = ["applications", "desktop"]
