"""The image's own ``xdotool`` and ImageMagick's ``import``: nothing is sent into the sandbox."""

from __future__ import annotations

import asyncio
import logging
import shlex
from typing import Any

from harbor.agents.computer_1 import runtime
from harbor.agents.computer_1.runtime import ComputerAction, RuntimeRequestError, build_xdotool_argv

from deskhand.harbor.drivers.driver import Driver, Readiness, Region, Sandbox
from deskhand.harbor.drivers.looking import LOOK_WITH_TOOLS
from deskhand.harbor.errors import BAD_GATEWAY, DisplayDied, NotReady
from deskhand.harbor.frames import Frame
from deskhand.harbor.translation import QUIET

#: Has the screen stopped changing: three looks at it that are alike, one after the other.
_QUIET = r"""
end=$(($(date +%s%N) + @BOUND@)); last=; alike=0
while :; do
  now=$(import -window root -resize '25%' rgb:- | cksum) || exit 1
  if [ "$now" = "$last" ]; then alike=$((alike + 1)); else alike=0; fi
  last=$now
  [ "$alike" -ge 2 ] && exit 0
  [ "$(date +%s%N)" -ge "$end" ] && exit 0
  sleep 0.05
done
"""


class ToolsDriver(Driver):
    """Harbor's own actions, on the display of the settings."""

    name = "tools"
    zooms = False

    def __init__(self, sandbox: Sandbox, logger: logging.Logger) -> None:
        super().__init__(sandbox, logger)
        self._xauthority = sandbox.settings.xauthority
        self._unsettled = False

    async def prepare(self) -> None:
        """It is looked for with the display."""

    async def look_for_display(self, seconds: float) -> Readiness | str:
        settings = self._sandbox.settings
        wanted = shlex.quote(self._xauthority or "")
        head = f"DISPLAY={settings.display}; WANTED={wanted}; SECONDS_LEFT={max(1, int(seconds))}"
        finished = await self._sandbox.command(
            runtime._bash_inline(f"export DISPLAY; {head}\n{LOOK_WITH_TOOLS}"),
            timeout_sec=int(seconds) + 60,
            label="wait for the display",
        )
        for line in reversed((finished.stdout or "").splitlines()):
            words = line.split(" ", 4)
            if words[0] == "deskhand-missing":
                raise NotReady(
                    f"the image has no {words[1]}, which driver=tools needs (xdotool, and import of ImageMagick):"
                    " driver=hand needs python3 only"
                )
            if words[0] == "deskhand-display" and len(words) == 5:
                self._xauthority = None if words[4] == "-" else words[4]
                return Readiness((int(words[1]), int(words[2])), int(words[3]) < 2, self._xauthority)
            if words[0] == "deskhand-error":
                return " ".join(words[1:])
        return f"looking for it failed ({(finished.stderr or '').strip()[-300:] or finished.return_code})"

    async def act(self, action: ComputerAction) -> dict[str, Any]:
        if action.type == "screenshot":
            return {"status": "ok"}
        if action.type in ("wait", "sleep"):
            return await self._stock(action)
        try:
            answer = await self._stock(action)
        except RuntimeRequestError as error:
            if error.status_code not in (400, 403) and not await self.is_alive():
                raise DisplayDied(action.type, error.detail) from error
            raise
        if action.type not in QUIET:
            await self._wait_until_settled()
        return answer

    async def capture(self, target: str, region: Region | None = None) -> Frame | None:
        if self._unsettled:
            await self._wait_until_settled()
            self._unsettled = False
        finished = await self._sandbox.command(
            self._capture_command(target), timeout_sec=max(30, self._sandbox.patience), label="screenshot"
        )
        if finished.return_code == 0:
            return None
        said = (finished.stderr or finished.stdout or "").strip()[-300:] or f"exit status {finished.return_code}"
        await self._sandbox.check_sandbox("screenshot", said)
        if not await self.is_alive():
            raise DisplayDied("screenshot", said)
        raise RuntimeRequestError("screenshot", BAD_GATEWAY, f"no picture could be taken: {said}")

    async def is_alive(self) -> bool:
        finished = await self._sandbox.command(
            f"{self._prefix()} timeout 10 xdotool getdisplaygeometry", timeout_sec=20, label="liveness"
        )
        if finished.return_code != 0:
            said = (finished.stderr or "").strip() or f"exit status {finished.return_code}"
            await self._sandbox.check_sandbox("liveness", said)
        return bool(finished.return_code == 0)

    def changed(self) -> None:
        self._unsettled = True

    def _prefix(self) -> str:
        cookie = f" XAUTHORITY={shlex.quote(self._xauthority)}" if self._xauthority else ""
        return f"DISPLAY={self._sandbox.settings.display}{cookie}"

    async def _stock(self, action: ComputerAction) -> dict[str, Any]:
        """Harbor's own translation into commands, each run with our display and cookie."""
        argvs = build_xdotool_argv(action, self._sandbox.geometry)
        if argvs is not None:
            for argv in argvs:
                await self._xdotool(argv, f"action:{action.type}")
            return {"status": "ok"}
        return await self._composed(action)

    async def _composed(self, action: ComputerAction) -> dict[str, Any]:
        """What is more than one command in Harbor."""
        kind = action.type
        if kind == "wait":
            await asyncio.sleep(1.0)
        elif kind == "sleep":
            await asyncio.sleep(action.duration_seconds or action.duration or 1.0)
        elif kind == "hold_key":
            keys = runtime._xdotool_key_sequence(action.keys)
            for key in keys:
                await self._xdotool(["keydown", key], "hold_key:down")
            await asyncio.sleep(action.duration if action.duration is not None else 1.0)
            for key in keys:
                await self._xdotool(["keyup", key], "hold_key:up")
        elif kind == "type_text_at":
            place = [str(action.x or 0), str(action.y or 0)]
            await self._xdotool(["mousemove", *place, "click", "1"], "type_text_at:click")
            if action.clear_before_typing is not False:
                await self._xdotool(["key", "--clearmodifiers", "ctrl+a"], "type_text_at:clear")
            if action.text:
                await self._xdotool(["type", "--clearmodifiers", "--", action.text], "type_text_at:type")
            if action.press_enter is not False:
                await self._xdotool(["key", "--clearmodifiers", "Return"], "type_text_at:enter")
        elif kind == "cursor_position":
            said = await self._xdotool(["getmouselocation", "--shell"], "cursor_position")
            fields = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
            return {"status": "ok", "x": int(fields["X"]), "y": int(fields["Y"])}
        else:
            raise RuntimeRequestError(kind, 400, f"Unsupported action type: {kind}")
        return {"status": "ok"}

    async def _xdotool(self, argv: list[str], label: str) -> str:
        finished = await self._sandbox.command(
            f"{self._prefix()} {shlex.join(['xdotool', *argv])}", timeout_sec=self._sandbox.patience, label=label
        )
        if finished.return_code != 0:
            said = (finished.stderr or "").strip() or "exec returned non-zero"
            await self._sandbox.check_sandbox(label, said)
            raise RuntimeRequestError(label, finished.return_code, said, recoverable=True)
        return finished.stdout or ""

    async def _wait_until_settled(self) -> None:
        settings = self._sandbox.settings
        if settings.settle == "fixed" or settings.settle_sec == 0:
            await asyncio.sleep(settings.settle_sec)
            return
        script = _QUIET.replace("@BOUND@", str(int(settings.settle_sec * 1e9)))
        finished = await self._sandbox.command(
            f"{self._prefix()} {runtime._bash_inline(script)}",
            timeout_sec=int(settings.settle_sec) + max(30, self._sandbox.patience),
            label="settle",
        )
        if finished.return_code != 0 and not await self.is_alive():
            raise DisplayDied("settle", (finished.stderr or "").strip() or "no picture could be taken")

    def _capture_command(self, target: str) -> str:
        """One chain into a fresh file: what fails in it fails it, and no older picture is left to be taken for it."""
        latest = f"{runtime._SCREENSHOT_DIR}/latest.png"
        fresh = f"{runtime._SCREENSHOT_DIR}/fresh.png"
        width, height = self._sandbox.picture
        resize = f" -resize {width}x{height}!" if self._sandbox.settings.screenshot_size else ""
        taken, kept, wanted = shlex.quote(fresh), shlex.quote(latest), shlex.quote(target)
        directories = f"{shlex.quote(runtime._SCREENSHOT_DIR)} {shlex.quote(target.rpartition('/')[0] or '/')}"
        chain = (
            f"rm -f {taken} {kept} {wanted} && mkdir -p {directories} && "
            f"{self._prefix()} import -window root{resize} png24:{taken} && test -s {taken} && "
            f"cp {taken} {wanted}.part && mv -f {wanted}.part {wanted} && mv -f {taken} {kept}"
        )
        return str(runtime._bash_inline(f"{chain} || {{ rm -f {taken} {kept} {wanted} {wanted}.part; exit 1; }}"))
