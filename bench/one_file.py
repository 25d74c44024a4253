"""How long does the one-file form take to its first reply, beside a bare interpreter and one xdotool call?

python -m bench.one_file [PYTHON]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

from bench.sides import compare, timed
from deskhand.hand import build
from deskhand.testing import xvfb

LOOK = {"actions": [{"action": "cursor_position"}]}
CLICK = {
    "actions": [{"action": "click", "x": 200, "y": 200}],
    "settle": {"mode": "none"},
    "picture": {"format": "png"},
}


def main(given: list[str]) -> int:
    python = given[0] if given else "/usr/bin/python3"
    with tempfile.TemporaryDirectory() as folder, xvfb() as server:
        file = build(os.path.join(folder, "deskhand-hand.pyz"))

        def run(*command: str, request: object = None) -> Callable[[], float]:
            content = json.dumps(request).encode() if request is not None else b""

            def once() -> None:
                subprocess.run(command, input=content, env=server.env, check=True, stdout=subprocess.DEVNULL)

            return timed(once)

        compare(
            "one_file",
            {
                "ours": run(python, file, request=LOOK),
                "a click and a picture": run(python, file, request=CLICK),
                "python alone": run(python, "-c", "pass"),
                "xdotool getmouselocation": run("xdotool", "getmouselocation"),
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
