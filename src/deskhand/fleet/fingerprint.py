"""What a desktop is like before anybody has used it, so that one that differs is not handed out.

The initial state is known to move scores: a font that is missing or a dialog that is open changes what an agent sees.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from functools import lru_cache
from typing import Any

from deskhand.errors import DeskhandError
from deskhand.fleet.launching import SandboxLauncher
from deskhand.fleet.making import Made
from deskhand.hand import applications, windows
from deskhand.hand.x11 import Connection, core

Fingerprint = dict[str, Any]

#: Seconds that a new desktop gets to become like its template: what appears late is waited for.
LATE = 3.0
#: Seconds that the first desktop, the template of the others, must stay as it is.
STILL = 0.4
_LOOK = 0.05
_TIMEOUT = 20.0
_PACKAGES = "/var/lib/dpkg/status"


def take(made: Made) -> Fingerprint:
    """The fingerprint of a desktop as it is now.

    ``size`` [width, height]; ``windows``, each with type, app, title, rect and state; ``fonts``,
    a digest of what fontconfig lists there; ``applications``, id to version; ``locale``.

    Raises:
        DeskhandError: The display can not be looked at.
    """
    return {**_seen(made), "fonts": _fonts(made), "applications": _applications(made), "locale": _locale(made.env)}


def take_template(made: Made) -> Fingerprint:
    """As ``take``, of a desktop whose windows have stayed as they are for a moment."""
    deadline = time.monotonic() + LATE
    found = take(made)
    while True:
        time.sleep(STILL)
        seen = _seen(made)
        if all(found[name] == value for name, value in seen.items()) or time.monotonic() > deadline:
            return {**found, **seen}
        found.update(seen)


def differences(made: Made, template: Fingerprint) -> list[str]:
    """In which ways a desktop is not as its template says, in words; waits a little for what is late.

    Raises:
        DeskhandError: The display can not be looked at.
    """
    deadline = time.monotonic() + LATE
    found = take(made)
    while (unlike := _unlike(found, template)) and time.monotonic() < deadline:
        time.sleep(_LOOK)  # a new window would wake us; one that is gone or moved would take a watch on each
        found.update(_seen(made))
    return unlike


def _unlike(found: Fingerprint, template: Fingerprint) -> list[str]:
    unlike = []
    for name in sorted({*found, *template}):
        one, other = template.get(name), found.get(name)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            keys = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
            unlike += [f"{name}: {key} is {other.get(key)!r}, not {one.get(key)!r}" for key in keys[:3]]
        else:
            unlike.append(f"{name}: {_short(other)}, not {_short(one)}")
    return unlike


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _seen(made: Made) -> Fingerprint:
    with Connection.open(made.display, made.xauthority, _TIMEOUT) as connection:
        screen = core.get_geometry(connection, connection.root)
        found = [
            {"type": one.type, "app": one.app_id, "title": one.title, "rect": list(one.rect), "state": list(one.states)}
            for one in windows.read_all(connection)
            if one.viewable
        ]
    # Which of two panels is above the other is chance, and shows nowhere.
    return {"size": [screen.width, screen.height], "windows": sorted(found, key=str)}


def _fonts(made: Made) -> str:
    try:
        account = made.account if made.account is not None and made.account.switch and not made.enter else None
        listed = subprocess.run(
            [*made.enter, "fc-list", "--format", "%{file}|%{family}|%{style}|%{fontversion}\n"],
            env=made.env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown: fc-list can not be run (Debian: fontconfig)"
    lines = sorted(listed.splitlines())
    digest = hashlib.sha256(b"\n".join(lines)).hexdigest()
    return f"{len(lines)} fonts, {digest[:16]}"


def _applications(made: Made) -> dict[str, str]:
    try:
        if made.launcher is not None:
            paths = {entry["id"]: entry["path"] for entry in SandboxLauncher(made).listing()["apps"]}
        else:
            paths = {entry.id: entry.path for entry in applications.scan(made.env).listed()}
    except DeskhandError:
        return {}
    versions = _versions(tuple(sorted(set(paths.values()))), _changed(_PACKAGES))
    return {name: versions.get(path) or _file_version(path) for name, path in sorted(paths.items())}


@lru_cache(maxsize=8)
def _versions(paths: tuple[str, ...], changed: int) -> dict[str, str]:
    """Package and version by the path of a desktop entry (dpkg-query(1)); none where there is no dpkg."""
    if not paths or not changed:
        return {}
    try:
        owners = _run(["dpkg-query", "--search", *paths])
        owner = {path: names.split(",")[0].split(":")[0] for names, _, path in (o.partition(": ") for o in owners)}
        packages = sorted(set(owner.values()))
        shown = (
            _run(["dpkg-query", "--show", "--showformat", "${Package} ${Version}\\n", *packages]) if packages else []
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    version = dict(line.split(" ", 1) for line in shown if " " in line)
    return {path: f"{package} {version[package]}" for path, package in owner.items() if package in version}


def _run(command: list[str]) -> list[str]:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT)
    return done.stdout.splitlines()


def _file_version(path: str) -> str:
    """What stands for the version of an application that no package owns: its entry's content."""
    try:
        with open(path, "rb") as file:
            return "file " + hashlib.sha256(file.read(1 << 20)).hexdigest()[:16]
    except OSError:
        return "unreadable"


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _locale(env: dict[str, str]) -> dict[str, str]:
    return {n: v for n, v in sorted(env.items()) if n in ("LANG", "LANGUAGE", "TZ") or n.startswith("LC_")}
