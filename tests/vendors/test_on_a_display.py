"""The adapters on a real display: what the model is shown, and where its clicks land."""

from __future__ import annotations

import asyncio
import base64
import io
import math
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PIL import Image

from deskhand.backends import LocalDisplay
from deskhand.session import Session
from deskhand.testing.xserver import xvfb
from deskhand.vendors import load
from deskhand.vendors.base import Adapter
from deskhand.vendors.running import first_look, run_turn
from tests.vendors.examples import action_text, computer_call, function_call, preview_call, tool_call, tool_use

SCREEN = (3840, 2160)


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    with xvfb(width=SCREEN[0], height=SCREEN[1]) as server:
        yield server.display


def pointer(display: str) -> tuple[int, int]:
    """Where the server says that the pointer is."""
    command = ["xdotool", "getmouselocation", "--shell"]
    told = subprocess.run(command, env={"DISPLAY": display, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True)
    values = dict(line.split("=") for line in told.stdout.decode().split())
    return int(values["X"]), int(values["Y"])


async def turn(adapter: Adapter, display: str, reply: Any) -> tuple[Any, list[dict[str, Any]]]:
    async with Session(LocalDisplay(display)) as session:
        look = await first_look(adapter, session)
        results, _ = await run_turn(adapter, reply(adapter), session)
        return look, results


def corner(adapter: Adapter) -> tuple[int, int]:
    """The last position of the model's space."""
    space = adapter.space
    if "grid" in space:
        return space["grid"], space["grid"]
    return space["picture"][0] - 1, space["picture"][1] - 1


#: A reply that moves the pointer to a position.
MOVES: dict[str, Callable[[int, int], Any]] = {
    "anthropic_toolset": lambda x, y: [tool_use("mouse_move", {"coordinate": [x, y]})],
    "openai": lambda x, y: [computer_call({"type": "move", "x": x, "y": y})],
    "openai_preview": lambda x, y: [preview_call({"type": "move", "x": x, "y": y})],
    "gemini": lambda x, y: [function_call("move", {"x": x, "y": y})],
    "qwen": lambda x, y: [tool_call("mouse_move", {"coordinate": [x, y]})],
    "ui_tars": lambda x, y: action_text("hover", {"point": f"<point>{x} {y}</point>"}),
    "pyautogui": lambda x, y: f"pyautogui.moveTo({x}, {y})",
    "osworld": lambda x, y: {"action_type": "MOVE_TO", "x": x, "y": y},
}


@pytest.mark.parametrize("name", MOVES)
def test_the_picture_keeps_the_limits_and_its_last_pixel_is_the_screens(name: str, display: str) -> None:
    adapter = load(name)(SCREEN)
    planned = adapter.picture
    look, _ = asyncio.run(turn(adapter, display, lambda adapter: MOVES[name](*corner(adapter))))
    with Image.open(io.BytesIO(look.picture)) as image:
        assert image.size == planned == adapter.picture
        assert adapter.limits.allow(image.size)
    assert pointer(display) == (SCREEN[0] - 1, SCREEN[1] - 1)


def test_a_turn_of_several_calls(display: str) -> None:
    adapter = load("anthropic_toolset")(SCREEN)
    reply = [
        tool_use("mouse_move", {"coordinate": [100, 50]}, 0),
        tool_use("cursor_position", {}, 1),
        tool_use("zoom", {"region": [0, 0, 200, 100]}, 2),
        tool_use("screenshot", {}, 3),
    ]
    _, blocks = asyncio.run(turn(adapter, display, lambda _: reply))
    assert "is_error" not in str(blocks)
    assert blocks[1]["content"][0]["text"] == "X=100,Y=50"
    sizes = []
    for block in blocks[2:]:
        with Image.open(io.BytesIO(base64.b64decode(block["content"][-1]["source"]["data"]))) as image:
            sizes.append(image.size)
    width, height = adapter.picture
    # A zoom shows its region at full detail: as many pixels as the screen has there.
    assert sizes[0] == (math.ceil(200 * SCREEN[0] / width), math.ceil(100 * SCREEN[1] / height))
    assert sizes[1] == (width, height)
    assert adapter.space == {"picture": [width, height]}


def test_a_refused_application_is_worded_for_the_model(display: str) -> None:
    adapter = load("gemini")(SCREEN, environment="browser", browser="No Such Browser")
    reply = [function_call("open_web_browser", {}), function_call("click", {"x": 1, "y": 2}, 1)]
    _, (first, second) = asyncio.run(turn(adapter, display, lambda _: reply))
    error = first["function_response"]["response"]["error"]
    assert "No Such Browser" in error
    assert "action 0" not in error
    assert "nothing was sent" in second["function_response"]["response"]["error"]
