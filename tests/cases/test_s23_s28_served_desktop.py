"""S1, S23, S24, S27, S28 on a whole desktop that is served over HTTP, started by a service that has no environment."""

from __future__ import annotations

import io
import json
import os
import pwd
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deskhand.desktop import DesktopState, stop_desktop
from deskhand.hand import windows
from deskhand.hand.x11 import Connection
from tests.commands import PROGRAM, Answer, act, deskhand, start

for module in ("fastapi", "uvicorn", "httpx2"):
    pytest.importorskip(module)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="accounts of their own take root"),
]

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


@dataclass
class Served:
    """A served desktop, and the environment with which commands reach it."""

    desktop: DesktopState
    env: dict[str, str]

    @property
    def token(self) -> str:
        return Path(self.desktop.token_file).read_text().strip()

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> int:
        """One request with the token, and its status."""
        whole = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.desktop.url + path, body, whole, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def processes(self) -> dict[int, str]:
        """Every process of the desktop and of what serves it: pid to account."""
        from deskhand.desktop import processes

        pids = {*processes.processes_of(self.desktop.id), *(pid for pid, _ in self.desktop.processes.values())}
        return {pid: owner(pid) for pid in pids if os.path.exists(f"/proc/{pid}")}


def owner(pid: int) -> str:
    return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name


@pytest.fixture(scope="module")
def up() -> Iterator[Served]:
    """``env -i deskhand desktop up``: no session bus, no runtime directory, no home."""
    command = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", PROGRAM, "desktop", "up", "--serve", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    desktop = DesktopState.of(json.loads(done.stdout))
    env = {"PATH": "/usr/bin:/bin", "DESKHAND_URL": desktop.url, "DESKHAND_TOKEN_FILE": desktop.token_file}
    try:
        yield Served(desktop, env)
    finally:
        stop_desktop(desktop.display)


# ---- S23: no session bus


def test_s23_a_start_without_an_environment_gives_a_whole_desktop(up: Served) -> None:
    assert up.ask("GET", "/health") == 200
    with Connection.open(up.desktop.display, up.desktop.xauthority) as conn:
        assert windows.manager_window(conn) is not None
    assert up.desktop.env["DBUS_SESSION_BUS_ADDRESS"]
    assert up.desktop.env["XDG_RUNTIME_DIR"]
    answer = deskhand(up.env, "screenshot", "-o", "/dev/null", "--json")
    assert answer.status == 0, answer
    assert answer.json["blank"] is False


# ---- S1, S24: launches over HTTP


def picture_of(up: Served, path: Path, *actions: dict[str, Any]) -> tuple[Answer, Image.Image]:
    """What the actions came to, and the picture of that answer."""
    request = {"actions": list(actions), "picture": True, "settle": {"timeout": 10}}
    answer = deskhand(up.env, "act", "--json", "-o", str(path), stdin=request)
    assert answer.status == 0, answer
    return answer, Image.open(io.BytesIO(path.read_bytes())).convert("RGB")


@pytest.mark.parametrize(
    ("name", "known_by"),
    [("Firefox ESR", "firefox"), ("Xfce Terminal", "terminal"), ("Thunar File Manager", "thunar")],
)
def test_s1_an_application_is_on_the_picture_right_after_and_runs_as_desk(
    up: Served, tmp_path_factory: pytest.TempPathFactory, name: str, known_by: str
) -> None:
    pictures = tmp_path_factory.mktemp("pictures")
    if name not in {app["name"] for app in deskhand(up.env, "apps", "--json").json}:
        pytest.skip(f"{name} is not installed")
    _, before = picture_of(up, pictures / "before.png", {"action": "screenshot"})
    answer, after = picture_of(up, pictures / "after.png", {"action": "launch", "app": name, "timeout": 60})
    (launched,) = answer.json["results"]
    try:
        window = launched["window"]
        assert known_by in (window["title"] + str(window["app_id"])).lower()
        x, y, width, height = window["rect"]
        box = (max(x, 0), max(y, 0), min(x + width, after.width), min(y + height, after.height))
        assert after.crop(box).tobytes() != before.crop(box).tobytes(), "its window is not on the picture"
        shown = {one["id"]: one for one in deskhand(up.env, "windows", "--json").json}
        assert owner(shown[window["id"]]["pid"]) == up.desktop.user
    finally:
        quit_ = act(up.env, {"action": "quit", "app": launched["id"], "timeout": 30})
    assert quit_.status == 0, quit_
    assert launched["window"]["id"] not in {one["id"] for one in deskhand(up.env, "windows", "--json").json}


def test_s24_the_desktops_own_web_browser_opens_or_says_why_not(up: Served) -> None:
    answer = deskhand(up.env, "launch", "Web Browser", "--timeout", "60", "--json")
    if answer.status == 0:
        window = answer.json["window"]
        assert window["id"] in {one["id"] for one in deskhand(up.env, "windows", "--json").json}
        assert act(up.env, {"action": "close", "window": window["id"]}).status == 0
    else:
        assert not answer.json["ok"]
        assert len(answer.error) > 20, "the reason is missing"


# ---- S27: the token in an argument


def test_s27_the_token_stands_in_no_command_line_and_no_environment_of_another(up: Served) -> None:
    """While everything runs that has to do with it: the desktop, the launcher, computerd, a command, an MCP server."""
    secret = up.token.encode()
    waiting = start(up.env, "act", stdin={"actions": [{"action": "wait", "seconds": 30}]})
    server = subprocess.Popen([PROGRAM, "mcp"], env=up.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        assert b'"result"' in server.stdout.readline(), "the MCP server is up"
        seen = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ"):
                try:
                    content = Path(f"/proc/{pid}/{name}").read_bytes()
                except OSError:  # it has ended
                    continue
                assert secret not in content, (pid, name)
                seen.add(int(pid))
        assert seen >= {waiting.pid, server.pid, *up.processes()}
    finally:
        for process in (waiting, server):
            process.kill()
            process.communicate()
    help_ = deskhand(None, "serve", "--help", verbose=True).text
    assert "--token-file" in help_
    assert "--token " not in help_, "there is no option for the token itself"


# ---- S28: a page in a browser


def test_s28_what_a_foreign_page_could_send_is_refused_on_every_route(up: Served) -> None:
    where = ["act", "--json", "cursor_position"]
    before = deskhand(up.env, *where).json["results"][0]["point"]
    document = json.loads(
        urllib.request.urlopen(
            urllib.request.Request(up.desktop.url + "/openapi.json", headers={"Authorization": f"Bearer {up.token}"}),
            timeout=30,
        ).read()
    )
    routes = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    routes |= {("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/live"), ("POST", "/live/tickets"), ("GET", "/nothing")}
    assert len(routes) >= 12
    batch = json.dumps({"actions": [{"action": "move", "x": 77, "y": 77}], "holder": "page"}).encode()
    foreign: list[dict[str, str]] = [
        {"Host": "evil.example"},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Authorization": ""},
    ]
    served = []
    for method, path in sorted(routes):
        for headers in foreign:
            if path.startswith(("/health", "/live")) and "Authorization" in headers and method == "GET":
                continue  # they give nothing secret
            body = None if method == "GET" and "Content-Type" not in headers else batch
            status = up.ask(method, path, headers, body)
            if not 400 <= status < 500:
                served.append((method, path, headers, status))
    assert served == []
    assert deskhand(up.env, *where).json["results"][0]["point"] == before
    assert act(up.env, {"action": "move", "x": before[0], "y": before[1]}).status == 0, "no lease was taken"
