"""The desktop in an E2B sandbox: the one that runs there, or else a new one.

A sandbox of E2B's template ``desktop`` has Xvfb and Xfce installed and not running: E2B's own SDK starts them after it
has made the sandbox (e2b-desktop 2.7.2, ``Sandbox.create``), and so do we.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from deskhand.backends.places import Place
from deskhand.backends.running import run_to_its_end
from deskhand.errors import SetupError

#: Seconds for an X server to be found or to start, and for a window manager to come up on a new one.
_START_S, _MANAGER_S = 30.0, 90.0
#: Seconds between two looks for the window manager: who starts it there tells nobody.
_LOOK_S = 0.5

#: Run there: prints the display that answers, or starts one, with a desktop. Its argument is the size (``1280x800``).
FIND = r"""
import json, os, re, select, shutil, socket, subprocess, sys
def answers(display):
    for address in ("/tmp/.X11-unix/X%s", "\0/tmp/.X11-unix/X%s"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            try:
                probe.connect(address % display[1:])
                return True
            except OSError:
                pass
    return False
found = set()
try:
    found |= {int(name[1:]) for name in os.listdir("/tmp/.X11-unix") if re.fullmatch(r"X\d+", name)}
except OSError:
    pass
try:
    with open("/proc/net/unix") as sockets:
        found |= {int(number) for number in re.findall(r"@/tmp/\.X11-unix/X(\d+)$", sockets.read(), re.MULTILINE)}
except OSError:
    pass
own = re.fullmatch(r"(:\d+)(\.\d+)?", os.environ.get("DISPLAY", ""))
for display in ([own.group(1)] if own else []) + [":%d" % number for number in sorted(found)]:
    if answers(display):
        print(json.dumps({"display": display, "new": False}))
        sys.exit()
if shutil.which("Xvfb") is None:
    sys.exit("no X server runs there and Xvfb is not installed: use a template with a desktop, such as 'desktop'")
sessions = ("startxfce4", "startlxqt", "startlxde", "mate-session", "openbox-session", "openbox")
session = next((name for name in sessions if shutil.which(name)), None)
if session is None:
    sys.exit("no X server runs there and no desktop is installed: use a template with one, such as 'desktop'")
reader, writer = os.pipe()
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
words = ["Xvfb", "-displayfd", str(writer), "-screen", "0", sys.argv[1] + "x24", "-noreset", "-nolisten", "tcp"]
subprocess.Popen(words + ["-s", "0", "-dpms", "-ac"], pass_fds=(writer,), **quiet)
os.close(writer)
number = b""
while not number.endswith(b"\n"):
    data = os.read(reader, 64) if select.select([reader], [], [], 20)[0] else b""
    if not data:
        sys.exit("Xvfb did not start there")
    number += data
display = ":%d" % int(number)
subprocess.Popen([session], env=dict(os.environ, DISPLAY=display), **quiet)
print(json.dumps({"display": display, "new": True}))
"""


class Found(NamedTuple):
    """``new``: it was started just now, and its window manager may not have come up."""

    display: str
    new: bool


async def find_desktop(place: Place, python: str, size: tuple[int, int]) -> Found:
    """The display that runs there, or a new one of ``size`` pixels.

    Raises:
        SetupError: There is none, and none can be started.
        DisplayLost: The sandbox is gone.
    """
    try:
        async with asyncio.timeout(_START_S):
            finished = await run_to_its_end(place, [python, "-c", FIND, f"{size[0]}x{size[1]}"], b"")
    except TimeoutError:
        raise SetupError(f"no display was found or started in the sandbox within {_START_S:.0f} s") from None
    try:
        told = json.loads(finished.stdout)
        return Found(str(told["display"]), bool(told["new"]))
    except (ValueError, TypeError, KeyError):
        raise SetupError(f"no display can be found in the sandbox: {finished.last_words()}") from None


async def wait_for_manager(info: Callable[[], Awaitable[dict[str, Any]]]) -> None:
    """Wait until ``info`` names a window manager.

    Raises:
        SetupError: None came up.
    """
    deadline = time.monotonic() + _MANAGER_S
    while not (await info()).get("window_manager"):
        if time.monotonic() > deadline:
            raise SetupError(f"the desktop in the sandbox had no window manager within {_MANAGER_S:.0f} s")
        await asyncio.sleep(_LOOK_S)
