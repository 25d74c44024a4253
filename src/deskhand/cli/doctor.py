"""``deskhand doctor``: what is there, what is missing, and what to do."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import typer

from deskhand.cli.interruption import interruptible
from deskhand.cli.output import DisplayOption, JsonOption, XauthorityOption, fail, print_json
from deskhand.errors import DeskhandError
from deskhand.hand import applications, opener
from deskhand.hand.hand import Hand

Finding = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(display: DisplayOption = None, xauthority: XauthorityOption = None, as_json: JsonOption = False) -> None:
    """Look at the display, the desktop and this machine; exits 1 when something needed is missing."""
    with interruptible(Hand(display, xauthority)) as hand:
        findings = [*_display(hand), *_desktop(hand), *_machine()]
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            print(f"{finding['state']:<8} {finding['what']}: {finding['text']}")
    missing = [str(finding["what"]) for finding in findings if finding["state"] == "missing"]
    if missing:
        fail(f"what is needed is missing: {', '.join(missing)}", 1)


def _display(hand: Hand) -> Iterator[Finding]:
    try:
        info = hand.info()
    except DeskhandError as error:
        yield _finding("missing", "display", str(error))
        return
    width, height = info["size"]
    yield _finding("ok", "display", f"{info['display']}, {width}x{height}, depth {info['depth']}, {info['server']}")
    conn = hand.display.conn
    for name, without in (
        ("XTEST", "no input can be sent"),
        ("MIT-SHM", "pictures take longer"),
        ("DAMAGE", "waiting for a settled screen takes more work"),
        ("XKEYBOARD", "exact text can not be typed"),
        ("XFIXES", "the pointer can not be drawn into pictures"),
    ):
        state = "ok" if conn.extension(name) else "missing" if name in ("XTEST", "XKEYBOARD") else "limited"
        yield _finding(state, name, "there" if state == "ok" else f"not there: {without}")
    manager = info["window_manager"]
    yield _finding("ok" if manager else "limited", "window manager", manager or "none: windows can not be activated")


def _desktop(hand: Hand) -> Iterator[Finding]:
    environment = _tried(hand.environment)
    if isinstance(environment, DeskhandError):
        yield _finding("limited", "applications", str(environment))
        return
    found = applications.scan(environment)
    listed = len(found.listed())
    state = "ok" if listed else "limited"
    yield _finding(state, "applications", f"{listed} listed, {len(found.broken)} broken files skipped")
    name = opener.describe(environment)
    yield _finding("ok", "opener", name)
    bus = environment.get("DBUS_SESSION_BUS_ADDRESS")
    text = bus or "none known: D-Bus activated applications use Exec"
    yield _finding("ok" if bus else "limited", "session bus", text)


def _machine() -> Iterator[Finding]:
    version = sys.version_info
    yield _finding("ok", "python", f"{version.major}.{version.minor}.{version.micro}")
    for program, purpose in (("Xvfb", "desktop up"), ("startxfce4", "desktop up --session xfce")):
        path = shutil.which(program)
        yield _finding("ok" if path else "limited", program, path or f"not installed: `deskhand {purpose}` needs it")


def _finding(state: str, what: str, text: str) -> Finding:
    return {"state": state, "what": what, "text": text}


def _tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except DeskhandError as error:
        return error
