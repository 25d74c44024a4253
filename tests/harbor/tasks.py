"""A small Harbor task on a small desktop: a terminal whose input becomes a file."""

from __future__ import annotations

from pathlib import Path

#: The desktop that the task's sandbox runs: Xvfb, openbox, and an xterm that fills most of the screen.
DESKTOP = """#!/bin/bash
Xvfb :1 -screen 0 @SIZE@x24 -noreset -nolisten tcp @OPTIONS@ &
until [ -S /tmp/.X11-unix/X1 ]; do sleep 0.05; done
export DISPLAY=:1
xsetroot -solid '#305080'
echo "exec xterm -geometry 100x30+40+40 -e 'cat > /root/typed.txt'" > /root/begin.sh
# A window that is mapped while openbox starts may never be shown: openbox itself starts the terminal when it is ready.
openbox --startup "bash /root/begin.sh" &
sleep infinity
"""
TEXT = "desk hand"
INSTRUCTION = f"Click into the terminal, type {TEXT!r}, press Return and then ctrl+d.\n"
VERIFIER = f"""#!/bin/bash
mkdir -p /logs/verifier
grep -qx '{TEXT}' /root/typed.txt && reward=1 || reward=0
echo $reward > /logs/verifier/reward.txt
ps ax -o args > /logs/verifier/processes.txt
exit 0
"""
TOML = """version = "1.0"
[metadata]
[verifier]
timeout_sec = 60.0
[agent]
timeout_sec = 300.0
[environment]
build_timeout_sec = 60.0
"""


def make_task(place: Path, size: str = "1024x768", options: str = "", desktop: str = DESKTOP) -> Path:
    """Write the task into ``place`` and give it."""
    entry = desktop.replace("@SIZE@", size).replace("@OPTIONS@", options)
    return write_task(place, "entrypoint.sh", entry, VERIFIER, "/root/typed.txt")


def write_task(place: Path, script: str, body: str, verifier: str, typed: str) -> Path:
    """A task whose environment has one script, and whose oracle writes the file that is wanted."""
    for name, text in {
        "task.toml": TOML,
        "instruction.md": INSTRUCTION,
        f"environment/{script}": body,
        "environment/Dockerfile": "FROM scratch\n",
        "tests/test.sh": verifier,
        "solution/solve.sh": f"#!/bin/bash\necho '{TEXT}' > {typed}\n",
    }.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return place
