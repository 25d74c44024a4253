"""What an application in the image can not get at, what listens, and with which rights each part runs."""

from __future__ import annotations

import json
import secrets
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.image.computers import Computer, wait_for
from tests.image.containers import PORT, EngineContainer
from tests.image.entries import Entries

CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8}
CAPABILITIES["SYS_CHROOT"] = 18
INTRUDER = Path(__file__).parent / "intruder.py"


@pytest.fixture(scope="module")
def intrusion(computer: Computer) -> Any:
    """What a launched application found when it looked for the token everywhere."""
    entries = Entries(computer)
    script = entries.write("intruder.py", INTRUDER.read_text())
    result = f"{entries.home}/intrusion.json"
    words = ["/usr/bin/python3", script, result, secrets.token_hex(16), computer.token[::-1]]
    # It shows a window afterwards, so that the launch is a good one.
    line = "sh -c " + '"' + shlex.join(words).replace("'", "") + ' >$HOME/intruder.log 2>&1; exec mousepad"'
    entries.add("intruder", "Intruder", line.replace("$", "\\\\$"))
    computer.done({"action": "launch", "app": "intruder", "timeout": 60})
    try:
        text = wait_for(lambda: computer.run("cat", result, user="desk", check=False))
    except AssertionError:
        raise AssertionError(computer.run("cat", f"{entries.home}/intruder.log", user="desk", check=False)) from None
    yield json.loads(text)
    computer.act({"action": "quit", "app": "intruder", "force": True})
    entries.remove()


def test_a_launched_application_finds_the_decoy_everywhere_and_the_token_nowhere(intrusion: Any) -> None:
    assert set(intrusion["found"]["decoy"]) >= {"file", "environ", "cmdline", "memory", "descriptor"}
    assert intrusion["found"]["token"] == []


def test_what_it_is_refused(computer: Computer, intrusion: Any) -> None:
    refused = intrusion["refused"]
    for path in ("/run/computerd/token", "/run/computerd/Xauthority", "/run/secrets/deskhand_token"):
        assert refused["file"][path] == "Permission denied"
    pid = str(computer.pid_of("deskhand serve"))
    for kind in ("environ", "memory", "descriptors"):
        assert refused[kind][pid] == "Permission denied"
    for kind in ("ptrace", "signal"):
        assert refused[kind][pid] == "Operation not permitted"
    assert refused["root"][f"/proc/{pid}/root/run/computerd/token"] == "Permission denied"
    for part in ("/usr/bin/tini", "local/bin/entrypoint"):
        assert refused["environ"][str(computer.pid_of(part))] == "Permission denied"


def test_the_launcher_refuses_an_application_with_a_sentence(intrusion: Any) -> None:
    answer = json.loads(intrusion["launcher"])
    assert "apps" not in answer
    assert answer["error"] == "this launcher serves the uid 39218 only, not 39217"


def test_an_application_has_no_rights_and_nothing_of_ours(intrusion: Any) -> None:
    status = dict(line.split(":\t", 1) for line in intrusion["status"].splitlines() if ":\t" in line)
    assert {status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert intrusion["uid"] == 39217
    assert set(intrusion["groups"]) <= {39217}
    assert not [name for name in intrusion["environment"] if "TOKEN" in name.upper() or "NOTIFY" in name]
    assert all("/run/" not in target and "launcher" not in target for target in intrusion["descriptors"])


def test_the_token_is_in_no_command_line(computer: Computer) -> None:
    """S27."""
    for _pid, _user, _state, command in computer.processes():
        assert computer.token not in command
    assert computer.token not in computer.log()


def test_each_part_runs_as_its_account_with_its_rights(computer: Computer) -> None:
    mask = sum(1 << bit for bit in CAPABILITIES.values())
    as_root = []
    for pid, user, _state, command in computer.processes():
        status = computer.run("cat", f"/proc/{pid}/status", check=False)
        if not status or " -eo " in command:  # ps, which ended
            continue
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert facts["NoNewPrivs"].strip() == "1", command
        if user == "root":
            as_root.append(command)
            assert int(facts["CapEff"], 16) == mask, command
            if isinstance(computer.container, EngineContainer):  # bwrap leaves the bounding set as it is
                assert int(facts["CapBnd"], 16) == mask, command
        else:
            assert int(facts["CapBnd"], 16) == 0, command
            assert int(facts["CapEff"], 16) == 0, command
            assert user == ("computerd" if "deskhand serve" in command else "desk"), command
    assert len(as_root) == 2, as_root
    assert "tini" in as_root[0]
    assert "entrypoint" in as_root[1]


def test_nothing_listens_but_computerd(computer: Computer) -> None:
    listening = []
    for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        for line in computer.run("cat", f"/proc/net/{table}", check=False).splitlines()[1:]:
            fields = line.split()
            if fields[3] in ("0A", "07"):  # TCP_LISTEN; TCP_CLOSE, an unconnected datagram socket
                port, uid = int(fields[1].rpartition(":")[2], 16), int(fields[7])
                listening.append((table, port, uid))
    # root's: the supervisor keeps the address while computerd restarts, and hands the socket to it
    assert listening == [("tcp", PORT, 0)]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/health"),
        ("GET", "/info"),
        ("GET", "/apps"),
        ("POST", "/act"),
        ("POST", "/lease"),
        ("GET", "/screenshot"),
        ("GET", "/windows"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/live"),
        ("POST", "/live/tickets"),
        ("POST", "/mcp"),
    ],
)
def test_foreign_pages_and_strangers_are_refused_on_every_route(computer: Computer, method: str, path: str) -> None:
    """S28."""
    content = {"actions": [{"action": "move", "x": 1, "y": 1}]} if method == "POST" else None

    def status(**headers: str | None) -> int:
        return computer.request(
            method, path, content, {name.replace("_", "-"): v for name, v in headers.items()}
        ).status

    assert 400 <= status(Host="evil.example") < 500
    if path != "/health":
        assert 400 <= status(Origin="null") < 500
        assert 400 <= status(Origin="https://evil.example") < 500
        assert status(Authorization=None) == 401
        assert status(Authorization="Bearer wrong") == 401
    if method == "POST":
        assert 400 <= status(Content_Type="text/plain") < 500


def test_health_tells_nothing_secret(computer: Computer) -> None:
    answer = computer.request("GET", "/health", headers={"Authorization": None})
    assert answer.status == 200
    assert set(answer.json) <= {"ok", "display", "launcher", "screen_saver"}
