"""Where the desktop is: one file each; ``base`` says what each must answer."""

from deskhand.backends.base import Backend, Outcome
from deskhand.backends.local import LocalDisplay

__all__ = ["Backend", "LocalDisplay", "Outcome"]
