"""What one desktop of a fleet can reach of another, tried on the desktops: ``python -m tests.fleet.apart OPTIONS``.

Prints one JSON object. It needs nothing but the package, so that an account without our environment can run it too.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
import sys
from typing import Any

from deskhand.fleet import LeasedDesktop, LocalPool, Options
from deskhand.hand.state import read_desktops

#: Tries to connect to each address (``@``: an abstract socket); prints what came of it.
TRY = """
import json, socket, sys
def reach(address):
    if address.startswith("tcp:"):
        host, port = address[4:].rsplit(":", 1)
        family, where = socket.AF_INET, (host, int(port))
    else:
        family, where = socket.AF_UNIX, address.replace("@", chr(0), 1)
    with socket.socket(family) as tried:
        tried.settimeout(3)
        try:
            tried.connect(where)
        except OSError as error:
            return error.strerror or str(error)
        return "reached"
print(json.dumps([reach(address) for address in sys.argv[1:]]))
"""
LOOPBACK = """
import socket
with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()):
    print("reached")
"""


def facts_of(desktop: LeasedDesktop) -> dict[str, Any]:
    assert desktop.current is not None
    return next(facts for facts in read_desktops() if facts["id"] == desktop.current.desktop)


async def said(desktop: LeasedDesktop, *words: str) -> str:
    ran = await desktop.run(shlex.join(words), timeout=20)
    return (ran.stdout if ran.code == 0 else ran.stderr).decode().strip()


async def tried(desktop: LeasedDesktop, *addresses: str) -> list[str]:
    answer = await said(desktop, "python3", "-c", TRY, *addresses)
    found: list[str] = json.loads(answer)
    return found


def addresses_of(facts: dict[str, Any]) -> list[str]:
    server = f"/tmp/.X11-unix/X{facts['display'][1:]}"
    return [server, "@" + server, f"{facts['runtime_dir']}/bus"]


async def look(options: Options) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with LocalPool(options) as pool, pool.lease() as first, pool.lease() as second:
        # :1 is everybody's own display too.
        one, other = (second, first) if facts_of(second)["display"] == ":1" else (first, second)
        mine, theirs = facts_of(one), facts_of(other)
        assert (await other.run("echo secret > $HOME/secret")).code == 0
        found["own"] = await tried(one, *addresses_of(mine))
        found["other"] = await tried(one, *addresses_of(theirs))
        found["own_home"] = await said(other, "cat", theirs["home"] + "/secret")
        found["other_home"] = await said(one, "cat", theirs["home"] + "/secret")
        cookie = await said(one, "cat", theirs["xauthority"])
        found["other_cookie"] = "MIT" in cookie
        found["tmp"] = await said(other, "sh", "-c", "echo x > /tmp/seen-by-all && cat /tmp/seen-by-all")
        found["other_tmp"] = await said(one, "cat", "/tmp/seen-by-all")
        pid = theirs["processes"]["session"][0]
        found["other_environ"] = (await one.run(f"cat /proc/{pid}/environ > /dev/null")).code == 0
        found["other_root"] = (await one.run(f"ls /proc/{pid}/root/{theirs['home']}")).code == 0
        found["other_seen"] = (await one.run(f"test -d /proc/{pid}")).code == 0
        found["other_killed"] = (await one.run(f"kill -0 {pid}")).code == 0
        with socket.create_server(("0.0.0.0", 0)) as listening:
            port = listening.getsockname()[1]
            found["network"] = await tried(one, f"tcp:127.0.0.1:{port}", f"tcp:{_address()}:{port}")
        found["loopback"] = await said(one, "python3", "-c", LOOPBACK)
        launched = await one.act({"actions": [{"action": "launch", "app": "XTerm"}]})
        found["launched"] = launched.ok
        found["window"] = [window["app_id"] for window in await one.windows()]
        found["confined"] = await said(one, "grep", "NoNewPrivs", "/proc/self/status")
        found["uids"] = [int(await said(desktop, "id", "-u")) for desktop in (one, other)]
        if options.home_size < 128:
            found["too_much"] = await said(one, "sh", "-c", "head -c 128M /dev/zero > $HOME/full")
    return found


def _address() -> str:
    """An address of this machine that is not loopback; loopback where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def main() -> int:
    options = Options(**json.loads(sys.argv[1]))
    print(json.dumps({"uid": os.geteuid(), **asyncio.run(asyncio.wait_for(look(options), 120))}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
