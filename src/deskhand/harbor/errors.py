"""What can end a trial: its sandbox, or the display in it."""

from __future__ import annotations

from harbor.agents.computer_1.runtime import RuntimeRequestError

#: As HTTP has them, which Harbor's codes follow: Gone, Bad Gateway, Bad Request, Forbidden.
GONE, BAD_GATEWAY, BAD_REQUEST, FORBIDDEN = 410, 502, 400, 403


class SandboxLost(RuntimeRequestError):  # type: ignore[misc]
    """No command can be run in the sandbox any more: nothing the policy did in it is to blame. Discard the trial."""

    def __init__(self, while_doing: str, detail: str) -> None:
        super().__init__(while_doing, GONE, f"the sandbox is gone ({detail}): discard this trial and run it again")


class DisplayDied(RuntimeRequestError):  # type: ignore[misc]
    """The sandbox runs and its display does not answer any more, which a policy can cause. Score the trial."""

    def __init__(self, while_doing: str, detail: str) -> None:
        super().__init__(while_doing, BAD_GATEWAY, f"the display does not answer any more: {detail}")


class NotReady(RuntimeRequestError):  # type: ignore[misc]
    """The desktop that the trial is to use is not there, or not as the settings say."""

    def __init__(self, detail: str) -> None:
        super().__init__("start", BAD_GATEWAY, detail)
