#!/usr/bin/env python3
"""Write ``docs/reference/actions.md`` from the action model.

python3 tools/action_reference.py           # write it
python3 tools/action_reference.py --check   # exit 1 when the committed one differs
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from deskhand.hand.actions import KINDS

TARGET = Path(__file__).resolve().parent.parent / "docs/reference/actions.md"

# ruff: noqa: E501 — rows of a table stay on one line
HEAD = """\
# Actions

Generated from the action model by `tools/action_reference.py`.

A batch is `{"actions": [1 to 100], "space", "expect"?, "settle"?, "picture"?}`:

| field | |
|---|---|
| `space` | `"screen"` (root-window pixels, the default), `{"picture": [w, h]}` (pixels of a picture of that size) or `{"grid": 999}` |
| `expect` | `{"sequence": n}`: the picture looked at must still be the newest; `{"window": id}`: it must be active or under the pointer |
| `settle` | `{"mode": "quiet" \\| "fixed" \\| "none", "timeout": 2.0, "strict": false}` |
| `picture` | `false`, `true` or `{"format": "png" \\| "jpeg" \\| "webp", "max_edge", "region": [x0, y0, x1, y1], "cursor": false}` |

The answer is `{"ok", "sent", "results", "settled", "settle", "settle_ms", "moving", "picture"?}`: `sent` is `none`, `all`,
`part` or `unknown`, and only `none` is safe to retry; each result has `action`, `status` (`ok`, `failed`, `skipped`) and,
when it failed, `error`. Window ids are whole numbers, a `rect` is `[x, y, width, height]`.

| action | fields | |
|---|---|---|
"""


def reference() -> str:
    rows = [f"| `{name}` | {_fields(kind)} | {_words(kind)} |" for name, kind in KINDS.items()]
    return HEAD + "\n".join(rows) + "\n"


def _fields(kind: Any) -> str:
    shown = []
    for field in fields(kind):
        if field.name == "action":
            continue
        if field.default is MISSING and field.default_factory is MISSING:
            shown.append(f"**`{field.name}`**")
        elif field.default_factory is not MISSING:
            shown.append(f"`{field.name}=[]`")
        elif field.default is None:
            shown.append(f"`{field.name}`")
        else:
            shown.append(
                f"`{field.name}={str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
            )
    return " ".join(shown) or "none"


def _words(kind: Any) -> str:
    return " ".join(str(kind.__doc__).split()).replace("``", "`")


def main() -> int:
    text = reference()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text("utf-8") != text:
            print(f"{TARGET.name} differs from the action model; run tools/action_reference.py")
            return 1
        return 0
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
