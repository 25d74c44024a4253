"""The hand in the sandbox: act, settle and look in one exec, whose answer holds the picture."""

from __future__ import annotations

import base64
import io
import json
import logging
import shlex
import uuid
from typing import Any

from harbor.agents.computer_1.runtime import ComputerAction, RuntimeRequestError
from harbor.environments.base import ExecResult

from deskhand.backends.installing import RECEIVE, the_hand
from deskhand.harbor.drivers.driver import Driver, Readiness, Region, Sandbox
from deskhand.harbor.drivers.looking import LOOK_FOR_DISPLAY
from deskhand.harbor.errors import BAD_GATEWAY, BAD_REQUEST, DisplayDied, NotReady, SandboxLost
from deskhand.harbor.frames import Frame
from deskhand.harbor.sending import LONGEST_ARGUMENT, send_file
from deskhand.harbor.translation import QUIET, hand_actions
from deskhand.turns import longest

#: Kinds of errors that say that the display is gone, and the one that it has not answered in time.
_GONE, _SLOW = ("lost", "no_display"), "timeout"
#: Seconds a display that has just not answered is given for the picture after it.
_SLOW_PATIENCE = 30
#: What is said of a file that was uploaded without an error, and is not there, or not all of it.
_NOT_WHOLE = ("No such file or directory", "arrived damaged")
_PYTHON = "import sys; sys.exit(sys.version_info < (3, 9))"


async def has_python(sandbox: Sandbox) -> bool:
    """Whether the image has the Python that the hand needs."""
    answer = await sandbox.command(f"python3 -c {shlex.quote(_PYTHON)}", timeout_sec=60, label="look for python3")
    return bool(answer.return_code == 0)


class HandDriver(Driver):
    """The hand, sent there once as a file."""

    name = "hand"
    zooms = True

    def __init__(self, sandbox: Sandbox, logger: logging.Logger) -> None:
        super().__init__(sandbox, logger)
        # Of the sandbox and of nobody else: what key_down holds stays for this trial's next action.
        self._name = f"harbor-{uuid.uuid4().hex[:12]}"
        self._path = ""
        self._xauthority = sandbox.settings.xauthority
        self._frame: Frame | None = None
        self._answers = False
        self._unsettled = False

    async def prepare(self) -> None:
        finished = await self._install()
        if self._sandbox.uploads and any(said in (finished.stderr or "") for said in _NOT_WHOLE):
            self._sandbox.no_uploads("the hand did not arrive whole")
            finished = await self._install()
        path = (finished.stdout or "").strip().rpartition("\n")[2]
        if finished.return_code != 0 or not path.startswith("/"):
            raise NotReady(
                f"the hand can not be put into the sandbox ({_last_line(finished.stderr) or finished.return_code}):"
                " it needs python3 3.9 or newer there; driver=tools does without"
            )
        self._path = path

    async def _install(self) -> ExecResult:
        content, digest = the_hand()
        arrived = f"/tmp/deskhand-{self._name}.pyz"
        try:
            await send_file(self._sandbox, content, arrived)
        except SandboxLost:
            raise
        except RuntimeRequestError as error:
            raise NotReady(f"the hand can not be sent into the sandbox: {error.detail}") from error
        place = shlex.quote(arrived)
        return await self._sandbox.command(
            f"python3 -c {shlex.quote(RECEIVE)} {digest} < {place}; status=$?; rm -f {place}; exit $status",
            timeout_sec=120,
            label="install the hand",
        )

    async def look_for_display(self, seconds: float) -> Readiness | str:
        asked = json.dumps(
            {
                "path": self._path,
                "display": self._sandbox.settings.display,
                "xauthority": self._xauthority,
                "seconds": seconds,
            }
        )
        finished = await self._sandbox.command(
            f"python3 -c {shlex.quote(LOOK_FOR_DISPLAY)} {shlex.quote(asked)}",
            timeout_sec=int(seconds) + 30,
            label="wait for the display",
        )
        found = _answer_in(finished.stdout)
        if found is None:
            return f"looking for it failed ({_last_line(finished.stderr) or finished.return_code})"
        if "error" in found:
            return str(found["error"])
        self._xauthority = found["xauthority"]
        self._answers = True
        width, height = found["size"]
        return Readiness((int(width), int(height)), bool(found["blank"]), self._xauthority)

    async def act(self, action: ComputerAction) -> dict[str, Any]:
        actions = hand_actions(action, self._sandbox.screen)
        if actions is None:
            raise RuntimeRequestError(action.type, BAD_REQUEST, f"Unsupported action type: {action.type}")
        waits = action.type not in QUIET
        answer = await self._ask(
            {
                "actions": actions or [{"action": "screenshot"}],
                "settle": self._settle() if waits and actions else {"mode": "none"},
                "picture": self._whole(),
            },
            action.type,
        )
        if not answer["ok"]:
            failed: dict[str, Any] = next((result for result in answer["results"] if result["status"] == "failed"), {})
            detail = str(failed.get("error") or answer.get("error") or "it was not carried out")
            refused = answer.get("kind") in ("refused", "unsupported")
            raise RuntimeRequestError(action.type, BAD_REQUEST if refused else BAD_GATEWAY, detail, recoverable=True)
        result: dict[str, Any] = {"status": "ok", "settle": answer["settle"], "settle_ms": answer["settle_ms"]}
        if action.type == "cursor_position":
            point = answer["results"][0].get("point") or answer["results"][0].get("position")
            result["x"], result["y"] = int(point[0]), int(point[1])
        return result

    async def batch(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """A batch of the hand's own; its answer, whose picture ``capture`` has then.

        Raises:
            DisplayDied, SandboxLost, RuntimeRequestError: No answer came.
        """
        return await self._ask({"settle": self._settle(), **envelope, "picture": self._whole()}, "batch")

    async def capture(self, target: str, region: Region | None = None) -> Frame | None:
        frame, self._frame = self._frame, None
        if frame is not None and region is None and not self._unsettled:
            return frame
        request = {
            "actions": [{"action": "wait", "seconds": 0}],
            "settle": self._settle() if self._unsettled else {"mode": "none"},
            "picture": {"format": "png", "region": list(region)} if region is not None else self._whole(),
        }
        answer = await self._ask(request, "screenshot", whole=region is None)
        if answer.get("kind") == _SLOW:
            answer = await self._ask(request, "screenshot", whole=region is None, timeout=_SLOW_PATIENCE)
            if answer.get("kind") == _SLOW:
                raise DisplayDied("screenshot", str(answer.get("error")))
        taken, self._frame = self._frame, None
        if not answer["ok"] or taken is None:
            raise RuntimeRequestError("screenshot", BAD_GATEWAY, str(answer.get("error") or "no picture came"))
        self._unsettled = False
        return taken

    async def is_alive(self) -> bool:
        # The last step's answer has said so: asking again would be another exec.
        if self._answers:
            return True
        answer = await self._ask({"request": "info"}, "liveness", gone=False)
        return self._answers and "size" in answer

    def changed(self) -> None:
        self._frame = None
        self._unsettled = True

    def _settle(self) -> dict[str, Any]:
        settings = self._sandbox.settings
        if settings.settle_sec == 0:
            return {"mode": "none"}
        return {"mode": settings.settle, "timeout": settings.settle_sec}

    def _whole(self) -> dict[str, Any]:
        return {"format": "png", "max_edge": max(self._sandbox.picture)}

    async def _ask(
        self, request: dict[str, Any], label: str, whole: bool = True, gone: bool = True, timeout: int | None = None
    ) -> dict[str, Any]:
        """One request and the hand's answer, whose picture is then ``self._frame``.

        Raises:
            DisplayDied: The display is gone (not with ``gone`` false).
            RuntimeRequestError: No answer came.
            SandboxLost: See there.
        """
        self._frame = None
        finished = await self._sandbox.command(
            await self._command(request, timeout),
            timeout_sec=int(self._sandbox.patience + longest(request)),
            label=label,
        )
        answer = _answer_in(finished.stdout)
        if answer is None:
            said = _last_line(finished.stderr) or _last_line(finished.stdout) or f"exit status {finished.return_code}"
            await self._sandbox.check_sandbox(label, said)
            raise RuntimeRequestError(
                label, BAD_GATEWAY, f"the hand gave no answer ({said}): look before anything is sent again"
            )
        self._answers = answer.get("kind") not in (*_GONE, _SLOW)
        if gone and answer.get("kind") in _GONE:
            raise DisplayDied(label, str(answer.get("error", "no reason was given")))
        picture = answer.pop("picture", None)
        if picture is not None:
            content = base64.b64decode(picture["base64"])
            wanted = self._sandbox.picture if whole else None
            if wanted is not None and (picture["width"], picture["height"]) != wanted:
                content = _resized(content, wanted)
            self._frame = Frame(content, bool(picture["blank"]))
            answer["picture"] = True
        return answer

    async def _command(self, request: dict[str, Any], timeout: int | None) -> str:
        settings = self._sandbox.settings
        argv = ["python3", self._path, "--display", settings.display, "--session", self._name]
        if self._xauthority is not None:
            argv += ["--xauthority", self._xauthority]
        if timeout is not None:
            argv += ["--timeout", str(timeout)]
        hand = shlex.join(argv)
        text = json.dumps(request).encode()
        encoded = base64.b64encode(text).decode("ascii")
        if len(encoded) <= LONGEST_ARGUMENT:
            return f"printf %s {encoded} | base64 -d | {hand}"
        place = f"/tmp/deskhand-{self._name}-{uuid.uuid4().hex[:8]}.json"
        await send_file(self._sandbox, text, place)
        return f"{hand} < {place}; status=$?; rm -f {place}; exit $status"


def _answer_in(stdout: str | None) -> dict[str, Any] | None:
    """The answer among what the shell of the image may say as well; the last line of it that is one."""
    for line in reversed((stdout or "").splitlines()):
        if line.startswith("{"):
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                return None
            return answer if isinstance(answer, dict) else None
    return None


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _resized(content: bytes, size: tuple[int, int]) -> bytes:
    """The picture in exactly the size that the model has been told."""
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(content)) as picture:
        picture.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(out, "PNG")
    return out.getvalue()
