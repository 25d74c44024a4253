"""What does a hand that stays cost: memory, processor time while nothing changes, and X clients over many steps?"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from bench.sides import Answer
from deskhand.hand.x11 import Connection, xres
from deskhand.testing import xvfb

WORDS = "memory and idle cost of a hand that stays"
#: Seconds it is watched while nothing happens.
IDLE = 10.0
_BODY = """
import json, sys
from deskhand.hand.hand import Hand
hand = Hand()
for line in sys.stdin:
    for number in range(int(line)):
        hand.act({"actions": [{"action": "click", "x": 200 + number % 50, "y": 200}], "settle": {"mode": "none"},
                  "picture": number % 10 == 0})
    print("done", flush=True)
"""


def ask(rounds: int, idle: float = IDLE) -> Answer:
    """``rounds`` * 100 steps, a picture in each tenth."""
    answer = Answer("resident", WORDS)
    with xvfb() as server, Connection.open(server.display) as conn:
        package = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
        process = subprocess.Popen(
            [sys.executable, "-c", _BODY],
            env={**server.env, "PYTHONPATH": package},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdin
            assert process.stdout
            found = {}
            for name, steps in (("after 10 steps", 10), (f"after {rounds * 100:,} more", rounds * 100)):
                process.stdin.write(f"{steps}\n")
                process.stdin.flush()
                if process.stdout.readline() != "done\n":
                    answer.notes.append("the hand ended: see its error above")
                    return answer
                found[name] = {"MiB": _resident(process.pid), "X clients": len(xres.local_pids(conn))}
            before = _cpu(process.pid)
            time.sleep(idle)
            answer.facts["memory"] = found
            answer.facts["percent of a core while nothing changes"] = round(
                100 * (_cpu(process.pid) - before) / idle, 2
            )
        finally:
            process.kill()
            process.communicate()
    return answer


def _resident(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmRSS:"))
    return round(int(line.split()[1]) / 1024, 1)


def _cpu(pid: int) -> float:
    """Seconds of processor time used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
