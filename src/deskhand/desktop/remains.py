"""What a desktop leaves outside its processes, and its removal: sockets, lock files, shared memory, files, mounts."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from ..hand.state import desktop_is_alive, display_key, process_start_time, read_desktops
from . import xserver
from .processes import remove_shared_memory


def remove_sockets_and_memory(state: dict[str, Any], pids: set[int]) -> None:
    """Remove what dead ``pids`` of a desktop left in places that all desktops share."""
    number = int(display_key(state["display"])) if state["display"] else None
    leftovers = [leftover for leftover in xserver.find_leftovers() if leftover.number == number]
    xserver.clear_leftovers(leftovers)
    pids = pids | {process[0] for process in state["processes"].values()}
    for pid in pids:
        if process_start_time(pid) is None:
            # The session manager listens here under its pid, and leaves it when it is killed.
            _unlink(f"{xserver.ICE_DIRECTORY}/{pid}")
    others = [other for other in read_desktops() if other["id"] != state["id"] and other["uid"] == state["uid"]]
    last = not any(desktop_is_alive(other) for other in others)
    own_account = state["uid"] != os.geteuid()
    remove_shared_memory(pids, state["uid"] if own_account and last else None)


def remove_files(state: dict[str, Any]) -> None:
    """Remove the desktop's directory, its record of launches and, last, its state file."""
    directory = state["directory"]
    _unmount_below(directory)
    shutil.rmtree(directory, ignore_errors=True)
    path = state.get("state_file")
    if path:
        base = os.path.dirname(os.path.dirname(path))
        _unlink(os.path.join(base, "launched", display_key(state["display"]) + ".jsonl"))
        _unlink(path)


def _unmount_below(directory: str) -> None:
    """FUSE mounts (gvfs, the document portal) of killed processes would keep the directory from going away."""
    try:
        with open("/proc/self/mountinfo") as file:
            points = [line.split()[4] for line in file]
    except OSError:
        return
    for point in reversed([point for point in points if point.startswith(directory + "/")]):
        command = ["umount", "--lazy", point] if os.geteuid() == 0 else ["fusermount3", "-u", "-z", point]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            continue


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
