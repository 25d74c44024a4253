#!/usr/bin/env python3
"""Write ``docs/reference/vendors.md`` from the vendor adapters.

python3 tools/vendor_reference.py           # write it
python3 tools/vendor_reference.py --check   # exit 1 when the committed one differs
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from deskhand.hand.actions import KINDS
from deskhand.pictures import Limits, picture_size
from deskhand.vendors import load
from deskhand.vendors.gemini import DESKTOP
from deskhand.vendors.verbs import Verb

TARGET = Path(__file__).resolve().parent.parent / "docs/reference/vendors.md"

HEAD = """\
# Vendors

Generated from the adapters by `tools/vendor_reference.py`.

An adapter turns a vendor's calls into our batches ([actions](actions.md)) and the outcomes into the vendor's results.
Everything in a reply is checked before anything is sent: a verb that is not known, a missing or unknown field, a
position outside the picture are refused with a sentence for the model.

```python
from deskhand import LocalDisplay, Session
from deskhand.vendors import load
from deskhand.vendors.running import first_look, run_turn

adapter = load("anthropic_toolset")((1280, 800))            # the screen's size; adapter.tools() goes into the request
async with Session(LocalDisplay(":71")) as session:
    look = await first_look(adapter, session)               # the picture to begin with
    blocks, finish = await run_turn(adapter, message, session)
```

`message` is the vendor's object or its JSON; no SDK is needed for either. The session's `approve` is asked
before anything is sent when the vendor or the adapter wants a person's yes (OpenAI's safety checks, Gemini's safety
decisions, Anthropic's confirm). A whole loop for each vendor: [vendor-loops](../how-to/vendor-loops.md).

## Actions by vendor

"""

#: Heading, name for ``load``, what positions are.
VENDORS = (
    ("Anthropic", "anthropic_toolset", "pixels of the last picture of the whole screen"),
    ("OpenAI", "openai", "pixels of the last picture"),
    ("Gemini", "gemini", "0 to 999 on both axes"),
    ("Qwen-VL", "qwen", "0 to 1000 on both axes"),
    ("UI-TARS", "ui_tars", "pixels of the picture as the model resizes it, or 0 to 1000 on both axes"),
    ("pyautogui", "pyautogui", "pixels of the last picture, or of the screen"),
    ("OSWorld", "osworld", "pixels of the last picture, or of the screen"),
)
MORE = {
    "anthropic_toolset": "Each verb is a tool call, several a turn; each is answered, those after a failure with the"
    " API's own text. The older tools `computer_20250124` and `computer_20251124` (`anthropic`) take the same verbs in"
    " an `action` field, without `zoom` in the first; in those a `left_click_drag` without `start_coordinate` starts at"
    " the pointer.",
    "openai": "A call holds `actions`; its output holds a picture and nothing else, so an error is a message beside it."
    " `openai_preview` is the older `computer_use_preview`, with one `action` a call.",
    "gemini": 'Functions marked * are a browser\'s, and refused on a desktop (`environment="browser"` allows them).'
    " Both the generate-content and the interactions form are taken.",
    "qwen": "Tool calls of chat completions, or `<tool_call>` in text.",
    "ui_tars": 'Text with `Action:`; `positions="thousandths"` for 1.0 and Doubao.',
    "pyautogui": "Read as a syntax tree and never run: calls of these functions with literal arguments, imports of"
    " `pyautogui` and `time`. A last line of `DONE`, `FAIL` or `WAIT` is taken too.",
    "osworld": "The action space `computer_13`: JSON objects in code blocks, the parameters beside `action_type` or in"
    ' `parameters`; `positions="screen"` is OSWorld\'s own. Its code action space is `pyautogui`.',
}


def reference() -> str:
    adapters: list[Any] = [load(name) for _, name, _ in VENDORS]
    used = [kind for kind in KINDS if any(kind in verb.gives for cls in adapters for verb in cls.verbs.values())]
    lines = ["| ours | " + " | ".join(heading for heading, _, _ in VENDORS) + " |", "|---" * (len(VENDORS) + 1) + "|"]
    for kind in used:
        cells = [_names(cls, kind) for cls in adapters]
        lines.append(f"| `{kind}` | " + " | ".join(cells) + " |")
    ends = [_names(cls, "") if cls.vendor != "pyautogui" else "`DONE`, `FAIL`" for cls in adapters]
    lines.append("| (ends the run) | " + " | ".join(end.replace("–", "plain text") for end in ends) + " |")
    rest = ", ".join(f"`{kind}`" for kind in KINDS if kind not in used)
    text = HEAD + "\n".join(lines) + f"\n\nNo vendor asks for {rest}: those are for tools of ours.\n"
    return text + _pictures() + "".join(_vendor(*row) for row in VENDORS)


def _names(cls: Any, kind: str) -> str:
    """The verbs that become that action, those that become nothing else first."""
    found = [verb for verb in cls.verbs.values() if kind in verb.gives or (not kind and not verb.gives)]
    found.sort(key=lambda verb: len(verb.gives))
    return ", ".join(f"`{verb.name}`" for verb in found) or "–"


def _pictures() -> str:
    screens = ((1280, 800), (1920, 1080), (3840, 2160))
    lines = [
        "\n## Pictures\n",
        "A picture is never larger than the screen, keeps its shape, and fits what the model takes unscaled, so that a"
        " click lands within one pixel of what the model saw. `limits` of an adapter sets others.\n",
        "| | at most | " + " | ".join(f"screen {width}x{height}" for width, height in screens) + " |",
        "|---" * (len(screens) + 2) + "|",
    ]
    for heading, name in (
        ("Anthropic, toolset", "anthropic_toolset"),
        ("Anthropic, older tools", "anthropic"),
        ("OpenAI", "openai"),
        ("OpenAI, preview", "openai_preview"),
        ("Gemini", "gemini"),
        ("Qwen-VL", "qwen"),
        ("UI-TARS", "ui_tars"),
        ("pyautogui", "pyautogui"),
        ("OSWorld", "osworld"),
    ):
        limits = load(name).default_limits  # type: ignore[attr-defined]
        sizes = [picture_size(screen, limits) for screen in screens]
        lines.append(f"| {heading} | {_limits(limits)} | " + " | ".join(f"{w}x{h}" for w, h in sizes) + " |")
    return "\n".join(lines) + "\n"


def _limits(limits: Limits) -> str:
    words = [f"long edge {limits.max_edge}"]
    if limits.max_short_edge:
        words.append(f"short edge {limits.max_short_edge}")
    if limits.max_pixels:
        words.append(f"{limits.max_pixels / 1e6:.3g} megapixels")
    if limits.max_patches:
        words.append(f"{limits.max_patches} patches of {limits.patch}")
    return ", ".join(words)


def _vendor(heading: str, name: str, positions: str) -> str:
    cls: Any = load(name)
    lines = [
        f"\n## {heading}\n",
        f'`load("{name}")`. Read in: {cls.source}. Positions: {positions}. {MORE[name]}\n',
        "| verb | fields | becomes | |",
        "|---|---|---|---|",
    ]
    groups: dict[tuple[Any, ...], list[Verb]] = {}
    for verb in cls.verbs.values():
        groups.setdefault((verb.takes, verb.gives, verb.note, _star(name, verb)), []).append(verb)
    for (takes, gives, note, star), verbs in groups.items():
        names = ", ".join(f"`{verb.name}`{star}" for verb in verbs)
        fields = " ".join(f"`{word}`" for word in takes.split()) or "none"
        becomes = ", ".join(f"`{kind}`" for kind in gives) or "–"
        lines.append(f"| {names} | {fields} | {becomes} | {note} |")
    return "\n".join(lines) + "\n"


def _star(name: str, verb: Verb) -> str:
    return "*" if name == "gemini" and verb.name not in DESKTOP else ""


def main() -> int:
    text = reference()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text("utf-8") != text:
            print(f"{TARGET.name} differs from the vendor adapters; run tools/vendor_reference.py")
            return 1
        return 0
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
