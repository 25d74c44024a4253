"""Applications in the image: what is listed, what opens by name and as whom, what is refused."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from PIL import Image

from tests.image.computers import Computer, picture_of
from tests.image.entries import Entries, desk_environment

#: The menu as the panel shows it, by garcon itself (xfce4-panel's library), called from Python.
GARCON = """
import ctypes, json
garcon = ctypes.CDLL("libgarcon-1.so.0")
gobject = ctypes.CDLL("libgobject-2.0.so.0")
pointer, text = ctypes.c_void_p, ctypes.c_char_p
class GList(ctypes.Structure):
    pass
GList._fields_ = [("data", pointer), ("next", ctypes.POINTER(GList)), ("prev", pointer)]
def call(name, result, *arguments, library=garcon):
    function = getattr(library, name)
    function.restype, function.argtypes = result, [pointer] * len(arguments)
    return function(*arguments)
def kind(name):
    return getattr(garcon, name + "_get_type")
def is_a(thing, name):
    function = gobject.g_type_check_instance_is_a
    function.argtypes, function.restype = [pointer, ctypes.c_size_t], ctypes.c_int
    get_type = getattr(garcon, name + "_get_type")
    get_type.restype = ctypes.c_size_t
    return bool(function(thing, get_type()))
garcon.garcon_set_environment.argtypes = [text]
garcon.garcon_set_environment(b"XFCE")
menu = call("garcon_menu_new_applications", pointer)
garcon.garcon_menu_load.argtypes = [pointer, pointer, pointer]
assert garcon.garcon_menu_load(menu, None, None)
found = {}
def walk(menu):
    node = call("garcon_menu_get_elements", ctypes.POINTER(GList), menu)
    while node:
        element = node.contents.data
        if is_a(element, "garcon_menu_item"):
            if call("garcon_menu_element_get_visible", ctypes.c_int, element):
                id = call("garcon_menu_item_get_desktop_id", text, element).decode().removesuffix(".desktop")
                found[id] = call("garcon_menu_item_get_name", text, element).decode()
        elif is_a(element, "garcon_menu"):
            if call("garcon_menu_element_get_visible", ctypes.c_int, element):
                walk(element)
        node = node.contents.next
walk(menu)
print(json.dumps(found))
"""


def test_what_is_listed_is_the_menu_of_desk_entry_for_entry(computer: Computer) -> None:
    words = [f"{name}={value}" for name, value in desk_environment(computer).items()]
    output = computer.run("env", "-i", *words, "/usr/bin/python3", "-", user="desk", stdin=GARCON)
    menu: dict[str, str] = json.loads(output)
    listed = {app["id"]: app["name"] for app in computer.request("GET", "/apps").json["apps"]}
    assert {"firefox-esr", "xfce4-terminal", "thunar"} <= set(menu)
    assert listed == menu


@pytest.mark.parametrize(
    ("name", "title"),
    [("Firefox ESR", "Firefox"), ("Xfce Terminal", "Terminal"), ("Thunar File Manager", "Thunar")],
)
def test_an_application_opens_by_name_and_is_on_the_picture(computer: Computer, name: str, title: str) -> None:
    before = picture(computer.done({"action": "screenshot"}, picture=True))
    answer = computer.done({"action": "launch", "app": name, "timeout": 60}, picture=True)
    launched = answer["results"][0]
    try:
        assert launched["outcome"] in ("window", "focus")
        assert title in launched["window"]["title"] or title.lower() in launched["window"]["app_id"].lower()
        after = picture(answer)
        x, y, width, height = launched["window"]["rect"]
        box = (max(x, 0), max(y, 0), min(x + width, after.width), min(y + height, after.height))
        assert after.crop(box).tobytes() != before.crop(box).tobytes(), "its window is not on the picture"
        windows = {window["id"]: window for window in computer.request("GET", "/windows").json["windows"]}
        pid = windows[launched["window"]["id"]]["pid"]  # Thunar's is that of its daemon, which runs already
        assert computer.run("ps", "-o", "user:32=", "-p", str(pid)) == "desk"
    finally:
        computer.act({"action": "quit", "app": launched["id"], "force": True})


def test_firefox_shows_a_page_in_its_sandbox(computer: Computer) -> None:
    """Without chroot(2) its content processes crash at their start."""
    launched = computer.done({"action": "launch", "app": "firefox-esr", "timeout": 60})["results"][0]
    try:
        answer = computer.done(
            {"action": "key", "keys": "ctrl+l"},
            {"action": "type", "text": "data:text/html,<title>Seen</title><body bgcolor=lime>\n"},
            {"action": "wait_window", "title": "Seen", "timeout": 20},
            picture=True,
        )
        pixels = picture(answer).convert("RGB")
        assert pixels.getpixel((pixels.width // 2, pixels.height // 2)) == (0, 255, 0)
        states = [state for _pid, _user, state, command in computer.processes() if "contentproc" in command]
        assert states
        assert not [state for state in states if "Z" in state]
    finally:
        computer.act({"action": "quit", "app": launched["id"], "force": True})


def test_the_default_browser_opens(computer: Computer) -> None:
    """S24: the desktop's own "Web Browser"."""
    answer = computer.act({"action": "launch", "app": "Web Browser", "timeout": 60})
    assert answer["ok"], answer
    computer.act({"action": "quit", "app": answer["results"][0]["id"], "force": True})
    computer.act({"action": "close", "window": answer["results"][0]["window"]["id"]})


def test_names_that_are_refused(computer: Computer, entries: Entries) -> None:
    entries.add("one-of-two", "Twice There", "mousepad")
    entries.add("two-of-two", "Twice There", "mousepad")
    for name, said in (
        ("Fierfox", "unknown application"),
        ("Twice There", "one-of-two"),
        ("../../bin/sh", ""),
        ("Mousepad\n", ""),
        ("", ""),
        ("x" * 256, "255"),
        ("\U0001f600" * 256, "255"),
    ):
        answer = computer.act({"action": "launch", "app": name})
        assert not answer["ok"], name
        assert answer["sent"] == "none", answer
        assert said in str(answer), answer


def test_a_name_of_255_characters_of_four_bytes_reaches_the_launcher_whole(
    computer: Computer, entries: Entries
) -> None:
    name = "\U0001f5a5" * 254 + "\U0001f4bb"
    entries.add("long-name", name, "mousepad")
    answer = computer.done({"action": "launch", "app": name, "timeout": 30})
    assert answer["results"][0]["id"] == "long-name"
    assert answer["results"][0]["name"] == name
    computer.done({"action": "quit", "app": "long-name"})
    other = "\U0001f5a5" * 255
    answer = computer.act({"action": "launch", "app": other})
    assert not answer["ok"]
    assert "unknown application" in str(answer)


def test_exports_of_flatpak_are_listed(computer: Computer, entries: Entries) -> None:
    """S18: a service's environment lacks the login shell's directories."""
    entries.add("from-flatpak", "From Flatpak", "mousepad", below=".local/share/flatpak/exports/share/applications")
    answer = computer.request("GET", "/apps").json
    assert "From Flatpak" in {app["name"] for app in answer["apps"]}
    assert any("flatpak/exports" in directory for directory in answer["searched"])


def test_no_zombie_after_fifty_launches_and_closes(computer: Computer) -> None:
    for _ in range(50):
        computer.done(
            {"action": "launch", "app": "org.xfce.mousepad", "timeout": 30},
            {"action": "quit", "app": "org.xfce.mousepad", "timeout": 20},
            settle="none",
        )
    zombies = [process for process in computer.processes() if "Z" in process[2]]
    assert zombies == []
    assert not [process for process in computer.processes() if "mousepad" in process[3]]


def picture(answer: Any) -> Image.Image:
    return Image.open(io.BytesIO(picture_of(answer))).convert("RGB")
