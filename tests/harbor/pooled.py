"""A task for a desktop of a pool: its ``begin.sh`` opens a terminal whose input becomes a file.

The verifier gives nothing when the trial before has left a file anywhere, and leaves one everywhere.
"""

from __future__ import annotations

from pathlib import Path

from tests.harbor.tasks import TEXT, write_task

BEGIN = """#!/bin/bash
# Where the scripted agent clicks.
xterm -geometry 100x30+40+40 -e 'cat > "$HOME/typed.txt"' &
"""
#: Where a trial can write.
PLACES = ("$HOME/mark", "/tmp/mark", "/var/tmp/mark", "/dev/shm/mark", "/mark", "$XDG_RUNTIME_DIR/mark")
VERIFIER = f"""#!/bin/bash
mkdir -p /logs/verifier
reward=0
grep -qx '{TEXT}' "$HOME/typed.txt" && reward=1
for place in {" ".join(f'"{place}"' for place in PLACES)}; do
  [ -e "$place" ] && reward=0
  echo {TEXT} > "$place" || reward=0
done
echo $reward > /logs/verifier/reward.txt
echo "$HOME $DISPLAY" > /logs/verifier/desktop.txt
ps ax -o args > /logs/verifier/processes.txt
exit 0
"""


def make_pooled_task(place: Path) -> Path:
    """Write the task into ``place`` and give it."""
    return write_task(place, "begin.sh", BEGIN, VERIFIER, "$HOME/typed.txt")
