"""Stop a desktop, also one whose supervisor or X server was killed; and tell which there are."""

from __future__ import annotations

import os
import pwd
import signal
from typing import Any

from ..hand.errors import SetupError
from ..hand.state import display_key, is_alive, read_desktops
from . import processes
from .remains import remove_files, remove_sockets_and_memory

#: Seconds the supervisor gets to end its desktop; its own deadlines are shorter.
_SUPERVISED = 20.0


def list_desktops() -> list[dict[str, Any]]:
    """Every desktop that root or this user started and did not stop, each as its state file has it, and besides
    ``alive`` (all parts are) and ``parts`` (name to ``{"pid", "alive"}``)."""
    found = []
    for facts in read_desktops():
        parts = {name: {"pid": process[0], "alive": is_alive(*process)} for name, process in facts["processes"].items()}
        facts["parts"] = parts
        facts["alive"] = all(part["alive"] for part in parts.values()) and facts["state"] == "ready"
        if facts["state"] == "ready" and not facts["alive"]:
            facts["reason"] = f"no longer running: {', '.join(name for name in parts if not parts[name]['alive'])}"
        found.append(facts)
    return found


def stop_desktop(display: str) -> None:
    """End the desktop at ``display`` and everything it started, and remove what it leaves.

    Politely first (SIGTERM to the session, then to the X server), then not. Works after ``kill -9`` of its parts.

    Raises:
        SetupError: No desktop of ours is there, or it is another user's, or a process could not be ended.
    """
    key = display_key(display)
    known = read_desktops()
    facts = next((facts for facts in known if display_key(facts["display"]) == key), None)
    if facts is None:
        names = ", ".join(facts["display"] for facts in known)
        raise SetupError(
            f"no desktop that was started here is at {display}; "
            + (f"there are: {names}" if names else "there is none (start one with: deskhand desktop up)")
        )
    if os.geteuid() not in (0, _owner(facts)):
        raise SetupError(
            f"the desktop at {facts['display']} was started by {_name(_owner(facts))}: stop it as that user"
        )
    supervisor = facts["processes"]["supervisor"]
    if is_alive(*supervisor):
        os.kill(supervisor[0], signal.SIGTERM)
        processes.wait_for_end(supervisor[0], supervisor[1], _SUPERVISED)
    _end(facts)


def forget_if_dead(facts: dict[str, Any]) -> None:
    """Remove what is left of a desktop that no process belongs to any more, if it is ours to remove."""
    if any(is_alive(*process) for process in facts["processes"].values()):
        return
    if _owner(facts) == os.geteuid():
        _end(facts)


def _end(facts: dict[str, Any]) -> None:
    """End what is left by the desktop's mark and descent; the supervisor, when it did its work, left nothing."""
    roots = [(process[0], process[1]) for process in facts["processes"].values()]
    ended = processes.end_processes(facts["id"], roots)
    if ended.left:
        left = ", ".join(map(str, sorted(ended.left)))
        raise SetupError(f"processes of the desktop at {facts['display']} do not end, even killed: pids {left}")
    remove_sockets_and_memory(facts, ended.pids)
    remove_files(facts)


def _owner(facts: dict[str, Any]) -> int:
    """Whose desktop it is to stop; ours when somebody took it away meanwhile."""
    try:
        return os.stat(facts["state_file"]).st_uid
    except FileNotFoundError:
        return os.geteuid()


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
