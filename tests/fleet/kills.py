"""Kills at random, and what must be true afterwards whatever was killed."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deskhand.desktop.processes import processes_of
from deskhand.fleet.making import HOST_MARK
from deskhand.hand.state import is_alive, process_start_time, read_desktops
from deskhand.testing.batches import until

ROOT = Path(__file__).resolve().parents[2]


class Clients:
    """Client processes, each with a number that no other ever has; those that are killed are replaced."""

    def __init__(self, kind: str, place: str, log: Path, count: int, ttl: float) -> None:
        self._words = [sys.executable, "-m", "tests.fleet.client", kind, place]
        self._rest = [str(log), str(ttl)]
        self._next = 1
        self.running: list[subprocess.Popen[bytes]] = []
        for _ in range(count):
            self.start()

    def start(self) -> None:
        words = [*self._words, str(self._next), *self._rest]
        self._next += 1
        # What Ray and the windows of clients that were killed say is no fault of the client's.
        quiet = subprocess.DEVNULL
        self.running.append(subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet))

    def kill(self, which: subprocess.Popen[bytes]) -> None:
        which.kill()
        self._forget(which)
        self.start()

    def end(self) -> None:
        for one in list(self.running):
            one.send_signal(signal.SIGCONT)
            assert one.stdin is not None
            with contextlib.suppress(OSError):
                one.stdin.close()
        for one in list(self.running):
            try:
                one.wait(90)
            except subprocess.TimeoutExpired:
                one.kill()
                raise AssertionError("a client did not end") from None
            finally:
                self._forget(one)

    def _forget(self, which: subprocess.Popen[bytes]) -> None:
        which.wait()
        if which.stdin is not None:
            with contextlib.suppress(OSError):
                which.stdin.close()
        self.running.remove(which)


def desktops_of(fleet: str) -> list[dict[str, Any]]:
    return [facts for facts in read_desktops() if facts["env"].get(HOST_MARK, "").startswith(fleet + "/")]


def kill_a_desktop(chance: random.Random, fleet: str) -> None:
    """Its X server, its session, its supervisor, or what holds its sandbox."""
    found = [facts for facts in desktops_of(fleet) if facts["state"] == "ready"]
    if not found:
        return
    processes = chance.choice(found)["processes"]
    parts = [part for part in ("X server", "session", "supervisor", "namespaces") if part in processes]
    pid, start_time = processes[chance.choice(parts)]
    if is_alive(pid, start_time):
        os.kill(pid, signal.SIGKILL)


def stop_a_client_for_a_while(chance: random.Random, clients: Clients, seconds: float) -> None:
    """It loses its lease, does not know it, and goes on."""
    client = chance.choice(clients.running)
    client.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    client.send_signal(signal.SIGCONT)


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def judge(log: Path) -> dict[str, int]:
    """What the clients wrote: no desktop had two, nothing was received twice or by another's window; gives counts."""
    lines = lines_of(log)
    faults = [line["text"] for line in lines if line["is"] == "fault"]
    assert not faults, faults[0]
    holders: dict[str, set[tuple[int, int]]] = collections.defaultdict(set)
    for line in lines:
        if line["is"] == "leased":
            holders[line["desktop"]].add((line["client"], line["number"]))
    doubles = {desktop: who for desktop, who in holders.items() if len(who) > 1}
    assert not doubles, f"desktops that were leased twice: {doubles}"
    sends = {(line["client"], line["desktop"], *line["at"]) for line in lines if line["is"] == "sends"}
    ok = {(line["client"], line["desktop"], *line["at"]) for line in lines if line["is"] == "sent" and line["ok"]}
    seen_in = {line["desktop"]: line for line in lines if line["is"] == "seen"}
    received = 0
    for desktop, line in seen_in.items():
        seen = [tuple(at) for at in line["pressed"]]
        twice = [at for at, count in collections.Counter(seen).items() if count > 1]
        assert not twice, f"received more than once on {desktop}: {twice}"
        foreign = [at for at in seen if (line["client"], desktop, *at) not in sends]
        assert not foreign, f"received on {desktop} and not sent there by its holder: {foreign}"
        received += len(seen)
    errors = collections.Counter(line["kind"] for line in lines if line["is"] == "error")
    return {"leases": len(holders), "clicks": len(ok), "received": received, **errors}


def nothing_left(fleet: str, marks: set[str], others: Callable[[], list[int]] = lambda: []) -> None:
    """No process, and no state, of any of the desktops that the fleet ever had."""
    until(lambda: not desktops_of(fleet), "no state file is left", 60)
    until(lambda: not any(processes_of(mark) for mark in marks), "no process is left", 60)
    until(lambda: not wardens_of(fleet), "no warden is left", 60)
    until(lambda: not others(), "nothing else is left", 60)


def wardens_of(fleet: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and process_start_time(int(name)) is not None:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                if b"deskhand.fleet.warden" in words and any(word.startswith(f"{fleet}/".encode()) for word in words):
                    found.append(int(name))
    return found
