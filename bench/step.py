"""How many steps an hour, and is the picture right? A step is an action, the wait for the screen, and a PNG.

Ours beside the fixed-wait ways of agents (xdotool, 2.0 s, a picture by a program), and beside a picture taken at once,
over kinds of action on an XFCE with Mousepad, Thunar, xterm and Firefox with pages of this machine. *Right* is measured
against the picture three seconds later (``bench.settle.measures``, *cosmetic*; what the panel's clock changes aside).
"""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image, ImageChops

from bench.settle.measures import LATER, is_cosmetic, is_near
from bench.settle.scenarios import SCENARIOS, pages
from bench.settle.study import SLOW_KINDS
from bench.settle.traces import TILE, TILES_A_ROW
from bench.sides import Answer, NotInstalled, Row
from deskhand.desktop import DesktopState, start_desktop, stop_desktop
from deskhand.errors import DeskhandError
from deskhand.hand.hand import Hand

WORDS = "a step: action, settled, PNG in hand"
FIXED = 2.0
OURS, HARBOR, REFERENCE, AT_ONCE = (
    "ours",
    "xdotool, 2.0 s, import",
    "xdotool, 2.0 s, scrot, resize",
    "picture at once",
)
WARM_UP = "warm-up"
#: These never end or were made for the recorder.
LEFT_OUT = ("ff-spin-type", "ff-throb-type")
SLOW = (*SLOW_KINDS, "xt-pause", "ff-img1500")
#: Not among the kinds of the recorded traces.
ADDED = ("th-new", "mp-replace", "xt-pause", "ff-ctrlO", "ff-img1500")
#: Where the panel shows the time, and the lower edge of its buttons: a new minute has it paint them anew, and some of
#: them come out one shade lighter there. Left, top, right, bottom, in pixels.
CLOCK, EDGE = (1184, 0, 1280, 32), (0, 26, 1280, 27)
#: What a stock XFCE has on and a desktop of ours has off: channel, property, type, value.
STOCK = (
    ("xfwm4", "/general/use_compositing", "bool", "true"),
    ("xsettings", "/Gtk/EnableAnimations", "bool", "true"),
    ("xsettings", "/Gtk/OverlayScrolling", "bool", "true"),
    ("xfce4-panel", "/panels/panel-2/autohide-behavior", "uint", "1"),
)


@dataclass
class Tries:
    """What one side did in one kind."""

    seconds: list[float] = field(default_factory=list)
    near: list[bool] = field(default_factory=list)
    cosmetic: list[bool] = field(default_factory=list)


#: Carries an action out and gives the picture it ended with.
Side = Callable[[dict[str, Any]], Image.Image]


def ask(rounds: int, stock: bool = False, kinds: tuple[str, ...] = (), later: float = LATER) -> Answer:
    """``rounds`` / 10 tries of each side in each kind: the pools are what counts. ``stock``: effects and all."""
    answer = Answer("step-stock" if stock else "step", WORDS + (", on a stock XFCE" if stock else ""))
    chosen = kinds or tuple(kind for kind in SCENARIOS if kind not in LEFT_OUT)
    tries: dict[str, dict[str, Tries]] = {kind: {} for kind in chosen}
    with (
        TemporaryDirectory() as folder,
        xfce(stock) as desktop,
        pages() as address,
        Hand(desktop.display, desktop.xauthority) as hand,
    ):
        sides = _sides(hand, desktop, Path(folder))
        for number in range(max(1, rounds // 10)):
            for kind in chosen:
                order = [*sides.items()][number % len(sides) :] + [*sides.items()][: number % len(sides)]
                if number == 0:  # what is started for the first time is started for nobody
                    order.insert(0, (WARM_UP, sides[HARBOR]))
                for name, side in order:
                    try:
                        _try(hand, address, kind, side, tries[kind].setdefault(name, Tries()), later)
                    except (NotInstalled, FileNotFoundError):
                        answer.missing(name)
                    except DeskhandError as error:
                        answer.notes.append(f"{kind}, try {number + 1} of {name}: {error}")
    for sides_ in tries.values():
        sides_.pop(WARM_UP, None)
    _tell(answer, tries)
    return answer


def ask_stock(rounds: int) -> Answer:
    return ask(rounds, stock=True)


def _try(hand: Hand, address: str, kind: str, side: Side, into: Tries, later: float) -> None:
    scenario = SCENARIOS[kind]
    ready = scenario.prepare(hand, address)
    time.sleep(0.5)  # what the preparation may still do belongs to nobody
    began = time.perf_counter()
    picture = side(ready.action)
    seconds = time.perf_counter() - began
    time.sleep(later)
    tiles = differing_tiles(picture, shown(hand))
    into.seconds.append(seconds)
    into.near.append(is_near(tiles))
    into.cosmetic.append(is_cosmetic(tiles))
    scenario.clean_up(hand)


def _sides(hand: Hand, desktop: DesktopState, folder: Path) -> dict[str, Side]:
    env = {**os.environ, "DISPLAY": desktop.display, "XAUTHORITY": desktop.xauthority}
    file, small = str(folder / "picture.png"), str(folder / "small.png")

    def run(*command: str) -> None:
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ours(action: dict[str, Any], mode: str = "quiet") -> Image.Image:
        answered, picture = hand.act({"actions": [action], "settle": {"mode": mode}, "picture": True})
        if not answered["ok"] or picture is None:
            raise DeskhandError(f"the action failed: {answered}")
        return Image.open(io.BytesIO(picture.content))

    def at_once(action: dict[str, Any]) -> Image.Image:
        return ours(action, "none")

    def harbor(action: dict[str, Any]) -> Image.Image:
        run("xdotool", *xdotool(action))
        time.sleep(FIXED)
        run("import", "-window", "root", file)
        return Image.open(file)

    def reference(action: dict[str, Any]) -> Image.Image:
        run("xdotool", *xdotool(action))
        time.sleep(FIXED)
        run("scrot", "-o", file)
        run("convert", file, "-resize", "1024x640!", small)
        return Image.open(file)

    return {OURS: ours, HARBOR: harbor, REFERENCE: reference, AT_ONCE: at_once}


def xdotool(action: Mapping[str, Any]) -> list[str]:
    """The words that have xdotool do the same."""
    kind = action["action"]
    there = ["mousemove", str(action["x"]), str(action["y"])] if "x" in action else []
    if kind == "move":
        return there
    if kind == "click":
        button = {"left": "1", "middle": "2", "right": "3"}[action.get("button", "left")]
        return [*there, "click", "--repeat", str(action.get("count", 1)), "--delay", "60", button]
    if kind == "scroll":
        return [*there, "click", "--repeat", str(abs(action["dy"])), "--delay", "10", "5" if action["dy"] > 0 else "4"]
    if kind == "key":
        return ["key", action["keys"]]
    return ["type", action["text"]]


def shown(hand: Hand) -> Image.Image:
    """What the screen shows now."""
    taken = hand.display.screen.capture()
    return Image.frombytes("RGB", (taken.width, taken.height), taken.rgb())


def differing_tiles(one: Image.Image, other: Image.Image) -> list[int]:
    """Numbers of the 8x8 tiles in which two pictures of the screen differ, but for ``CLOCK`` and ``EDGE``."""
    difference = ImageChops.difference(one.convert("RGB"), other.convert("RGB")).point(lambda value: 255 * bool(value))
    for place in (CLOCK, EDGE):
        difference.paste(0, place)
    red, green, blue = difference.split()
    tiles = ImageChops.lighter(ImageChops.lighter(red, green), blue).reduce(TILE)
    width = tiles.width
    found = (divmod(index, width) for index, value in enumerate(tiles.tobytes()) if value)
    return [row * TILES_A_ROW + column for row, column in found]


def _tell(answer: Answer, tries: Mapping[str, Mapping[str, Tries]]) -> None:
    """Rows for each kind, and for the pools: there the seconds are means, so that ratios are steps an hour."""
    for kind, sides in tries.items():
        taken = {name: tried.seconds for name, tried in sides.items() if tried.seconds}
        answer.add(kind, taken, {name: tried.cosmetic for name, tried in sides.items()})
    pools = (
        ("all kinds", ()),
        ("the kinds of the recorded traces", ADDED),
        ("without loads, scrolling, slow commands", SLOW),
    )
    for pool, left_out in pools:
        kinds = [sides for kind, sides in tries.items() if kind not in left_out]
        names = list(dict.fromkeys(name for sides in kinds for name in sides))
        ours = 0.0
        for name in names:
            pooled = [sides[name] for sides in kinds if name in sides]
            seconds = [one for tried in pooled for one in tried.seconds]
            if not seconds:
                continue
            mean = statistics.fmean(seconds)
            ours = ours or mean
            right = sum(sum(tried.cosmetic) for tried in pooled)
            answer.rows.append(Row(pool, name, mean, round(mean / ours, 2), len(seconds), right))
            answer.facts[f"near: {pool}: {name}"] = f"{sum(sum(t.near) for t in pooled)} of {len(seconds)}"
    below = [kind for kind, sides in tries.items() if OURS in sides and _below(sides)]
    answer.facts["kinds below a fixed way in cosmetic fidelity"] = below


def _below(sides: Mapping[str, Tries]) -> bool:
    return any(sum(sides[OURS].cosmetic) < sum(sides[name].cosmetic) for name in (HARBOR, REFERENCE) if name in sides)


@contextmanager
def xfce(stock: bool = False) -> Iterator[DesktopState]:
    """A desktop of ours, or as near as can be to one that nobody has set up (``STOCK``)."""
    desktop = start_desktop("xfce", (1280, 800), environment={"GTK_OVERLAY_SCROLLING": "1"} if stock else None)
    try:
        for channel, name, kind, value in STOCK if stock else ():
            command = ["xfconf-query", "-c", channel, "-p", name, "-n", "-t", kind, "-s", value]
            other = {} if desktop.uid == os.getuid() else {"user": desktop.uid, "group": desktop.gid}
            subprocess.run(command, env=desktop.env, check=True, **other)  # type: ignore[call-overload]
        yield desktop
    finally:
        stop_desktop(desktop.display)
