"""Every error of the project: those of the hand, and what sessions and desktops add.

::

    DeskhandError
    ├── SetupError            whoever runs us can put it right
    │   ├── NoDisplay           no X server answers there, or it refuses us
    │   ├── DesktopInUse        another session has the desktop; nothing was sent
    │   ├── Unsupported         this display or desktop can not do it
    │   └── ModelUnavailable    the model can not be asked, or can not go on
    ├── ActionError           the model can try another way
    │   ├── BatchRefused        preflight found an error; nothing was sent
    │   │   └── BudgetSpent       the run has no actions left; nothing was sent
    │   └── ActionFailed        an action was tried and did not work
    └── BackendError          the calling code
        ├── DisplayLost         the connection to the X server ended
        │   └── DisplayTimeout    it did not answer in time
        ├── RequestFailed       the X server answered a request with an error
        └── CaptureFailed       no picture could be taken

``error.sent`` says how much may have reached the display: only ``"none"`` is safe to retry.
"""

from __future__ import annotations

from deskhand.hand.errors import (
    ActionError,
    ActionFailed,
    BackendError,
    BatchRefused,
    CaptureFailed,
    DeskhandError,
    DesktopInUse,
    DisplayLost,
    DisplayTimeout,
    NoDisplay,
    RequestFailed,
    SetupError,
    Unsupported,
)

__all__ = [
    "ActionError",
    "ActionFailed",
    "BackendError",
    "BatchRefused",
    "BudgetSpent",
    "CaptureFailed",
    "DeskhandError",
    "DesktopInUse",
    "DisplayLost",
    "DisplayTimeout",
    "ModelUnavailable",
    "NoDisplay",
    "RequestFailed",
    "SetupError",
    "Unsupported",
]


class BudgetSpent(BatchRefused):
    """The batch holds more actions than the run has left. Nothing was sent."""


class ModelUnavailable(SetupError):
    """A model's server can not be reached, or refuses: the key, the model's name, the rate, the request itself."""
