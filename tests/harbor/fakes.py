"""A sandbox that is none: it keeps every command, and answers as a sandbox with a desktop would."""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image

#: The desktop's size.
SIZE = (1024, 900)
#: What a command ends with: its status, and what it says on both outputs.
Said = tuple[int, str, str]


class FakeSandbox:
    """Harbor's environment as far as computer-1 uses it. ``commands`` are those that were run."""

    def __init__(self, logs: Path, size: tuple[int, int] = SIZE) -> None:
        self.size = size
        self.commands: list[str] = []
        self.uploads: dict[str, bytes] = {}
        self.default_user: str | None = None
        self.trial_paths = SimpleNamespace(agent_dir=logs)
        #: What a command that matches is answered with instead: the first that does.
        self.instead: list[tuple[str, Said | Exception]] = []
        #: The hand's requests, and what it answers beside what is asked for.
        self.requests: list[dict[str, Any]] = []
        self.hand: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> Any:
        self.commands.append(command)
        for pattern, said in self.instead:
            if re.search(pattern, command):
                if isinstance(said, Exception):
                    raise said
                return _result(*said)
        return _result(*self._said(command))

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self.uploads[target_path] = Path(source_path).read_bytes()

    def since(self, number: int) -> list[str]:
        """The commands after the first ``number``."""
        return self.commands[number:]

    def _said(self, command: str) -> Said:
        width, height = self.size
        if "deskhand_hand.hand" in command:
            return 0, json.dumps({"size": [width, height], "blank": False, "xauthority": None}) + "\n", ""
        if "zipfile" in command:
            return 0, "/tmp/deskhand-hand-0/abc\n", ""
        if "base64 -d |" in command or ".json;" in command:
            return 0, json.dumps(self._hand(self._request(command))) + "\n", ""
        if "deskhand-display" in command:
            return 0, f"deskhand-display {width} {height} 2 -\n", ""
        if "getdisplaygeometry" in command:
            return 0, f"{width} {height}\n", ""
        if "getmouselocation" in command:
            return 0, "X=10\nY=20\nSCREEN=0\nWINDOW=1\n", ""
        # What Harbor's own start asks for, so that it ends too.
        if "test -S /tmp/.X11-unix/X1" in command:
            return 0, "present ok\n", ""
        if "wmctrl -l" in command:
            return 0, "0x1 0 trial Chromium\n", ""
        if command.startswith("echo "):
            return 0, command[5:] + "\n", ""
        if "cksum" in command:
            return 0, "", ""
        if "import -window root" in command:
            self.files |= dict.fromkeys(_targets(command), picture(self.size))
            return 0, "", ""
        if command.startswith("base64 "):
            content = self.files.get(command.split()[2])
            return (0, base64.b64encode(content).decode(), "") if content else (1, "", "no such file")
        return 0, "", ""

    def _request(self, command: str) -> dict[str, Any]:
        match = re.search(r"printf %s (\S+) \|", command)
        text = base64.b64decode(match[1]) if match else self.uploads[re.findall(r"< (\S+\.json)", command)[0]]
        request: dict[str, Any] = json.loads(text)
        self.requests.append(request)
        return request

    def _hand(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("request") == "info":
            return {"size": list(self.size), "status": 0}
        results = [{"action": action["action"], "status": "ok", "point": [10, 20]} for action in request["actions"]]
        answer: dict[str, Any] = {
            "ok": True,
            "sent": "all",
            "results": results,
            "settle": "settled",
            "settle_ms": 80,
            "moving": [],
        }
        wish = request.get("picture")
        if wish:
            region = wish.get("region") or [0, 0, *self.size]
            size = region[2] - region[0], region[3] - region[1]
            edge = max(size)
            most = wish.get("max_edge") or edge
            if edge > most:
                size = round(size[0] * most / edge), round(size[1] * most / edge)
            answer["picture"] = {
                "width": size[0],
                "height": size[1],
                "blank": False,
                "base64": base64.b64encode(picture(size)).decode(),
            }
        answer.update(self.hand)
        if self.hand.get("picture", True) is None:
            del answer["picture"]
        return answer


def picture(size: tuple[int, int]) -> bytes:
    """A PNG of that size."""
    out = io.BytesIO()
    Image.new("RGB", size, (10, 20, 30)).save(out, "PNG")
    return out.getvalue()


def size_of(content: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(content)) as image:
        return image.size


def _targets(command: str) -> list[str]:
    """Where the chain moves the picture to: the file that was asked for, and Harbor's newest."""
    words = shlex.split(shlex.split(command)[-1]) if command.startswith("bash ") else shlex.split(command)
    return [words[place + 3] for place, word in enumerate(words) if word == "mv"]


def _result(code: int, stdout: str, stderr: str) -> Any:
    from harbor.environments.base import ExecResult

    return ExecResult(return_code=code, stdout=stdout, stderr=stderr)
