"""Every error the hand raises.

Three readers, three branches::

    DeskhandError
    ├── SetupError            whoever runs us can put it right
    │   ├── NoDisplay           no X server answers there, the cookie is refused, or there is no X screen
    │   ├── DesktopInUse        another session has the desktop; nothing was sent
    │   └── Unsupported         this display or desktop can not do it; nothing was sent
    ├── ActionError           the model can try another way
    │   ├── BatchRefused        preflight found an error; nothing was sent
    │   └── ActionFailed        an action was tried and did not work
    └── BackendError          the calling code
        ├── DisplayLost         the connection to the X server ended
        │   └── DisplayTimeout    the X server did not answer in time (another client may hold a grab)
        ├── RequestFailed       the X server answered a request with an error
        └── CaptureFailed       no picture could be taken

Input can not be unsent, so every error says in ``sent`` how much of a batch may have reached the display:
``"none"``, ``"part"``, ``"all"`` or ``"unknown"``. Only ``"none"`` is safe to retry.
"""

from __future__ import annotations

from typing import Any, Dict, Optional


class DeskhandError(Exception):
    """Base of every error of this project. ``str(error)`` is one line: what happened, and what to do."""

    sent = "none"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(" ".join(message.split("\n")))
        #: Machine-readable detail that belongs beside the sentence (``near``, ``ids``, ``window`` ...).
        self.facts: Dict[str, Any] = facts


def in_one_line(error: BaseException) -> str:
    """An error's sentence; for one that is none of ours, which and where: nobody is shown a traceback."""
    if isinstance(error, (DeskhandError, ValueError)) or hasattr(error, "facts"):
        return " ".join(str(error).split("\n"))
    place, code = "", error.__traceback__
    while code is not None:
        place = f" at {code.tb_frame.f_code.co_filename.rpartition('/')[2]}:{code.tb_lineno}"
        code = code.tb_next
    said = " ".join(str(error).split())[:200]
    return f"a fault in deskhand itself: {type(error).__name__}{place}{': ' + said if said else ''}. Please report it"


class SetupError(DeskhandError):
    """Something around us is not as it must be; whoever runs us can put it right."""


class NoDisplay(SetupError):
    """No X server answers at DISPLAY, it refuses the cookie, or it has no screen. Names what was tried."""


class DesktopInUse(SetupError):
    """Another session has the lease of this desktop, or took it over meanwhile. Nothing was sent.

    ``facts["holder"]`` is its name.
    """


class Unsupported(SetupError):
    """This display or desktop can not do what was asked. Nothing was sent."""


class ActionError(DeskhandError):
    """An action can not be, or was not, carried out; another one may be."""


class BatchRefused(ActionError):
    """Preflight found an error, so nothing was sent.

    ``index`` is the position of the action that is wrong (None: the envelope itself).
    """

    def __init__(self, message: str, index: Optional[int] = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.index = index


class ActionFailed(ActionError):
    """An action was tried and did not work. The rest of its batch was not run."""

    sent = "part"


def nothing_sent(message: str) -> ActionFailed:
    """The error of an action that was given up before any of it was sent."""
    error = ActionFailed(message)
    error.sent = "none"
    return error


class BackendError(DeskhandError):
    """The desktop did not answer as it must; ``sent`` says how much may have happened."""

    sent = "unknown"


class DisplayLost(BackendError):
    """The connection to the X server ended."""


class DisplayTimeout(DisplayLost):
    """The X server did not answer within the deadline. The connection is given up, so no late answer is misread."""


class RequestFailed(BackendError):
    """The X server answered a request with an error (X Window System Protocol, Errors).

    ``error`` is its name (``BadWindow``), ``request`` the request's (``GetGeometry``), ``value`` the bad resource id
    or value.
    """

    def __init__(self, error: str, request: str, value: int) -> None:
        super().__init__(f"the X server refused {request}: {error} (0x{value:x})")
        self.error = error
        self.request = request
        self.value = value


class CaptureFailed(BackendError):
    """No picture could be taken. An older picture is never given instead."""
