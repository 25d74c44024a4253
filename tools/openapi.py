#!/usr/bin/env python3
"""Write ``docs/reference/openapi.json`` from computerd's routes.

python3 tools/openapi.py           # write it
python3 tools/openapi.py --check   # exit 1 when the committed one differs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from deskhand.computerd.app import Computerd, routes
from deskhand.computerd.health import Health
from deskhand.computerd.live.mount import LiveView
from deskhand.computerd.served import ServedDesktop

TARGET = Path(__file__).resolve().parent.parent / "docs/reference/openapi.json"


def document() -> str:
    computerd = Computerd(ServedDesktop(":0"), Health(":0"))
    app = routes(computerd)
    LiveView(computerd.served, b"").add_to(app)
    return json.dumps(app.openapi(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    made = document()
    if "--check" not in sys.argv[1:]:
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_text(made, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == made:
        return 0
    print(f"{TARGET} differs from the routes: run tools/openapi.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
