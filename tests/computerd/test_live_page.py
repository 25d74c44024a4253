"""The page itself, in Debian's Chromium: it shows the desktop, says what happens, lets a person act, and recovers."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deskhand.hand import windows
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer
from tests.commands import deskhand, environment
from tests.computerd.daemons import RunningDaemon, daemon, write_token
from tests.x_windows import x_window
from tests.xservers import put_pixels

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser")) if path), None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
SECONDS = 30_000  # milliseconds


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def running(openbox_display: XServer, tmp_path: Path) -> Iterator[RunningDaemon]:
    with daemon(openbox_display, tmp_path, "--control") as it:
        yield it


@pytest.fixture
def conn(openbox_display: XServer) -> Iterator[Connection]:
    with Connection.open(openbox_display.display, openbox_display.xauthority) as it:
        yield it


@pytest.fixture
def page(browser: Any, running: RunningDaemon) -> Iterator[Any]:
    """The page, open and connected. What it loads from elsewhere, or says is wrong, fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    it = context.new_page()
    it.set_default_timeout(SECONDS)
    wrong: list[str] = []
    it.on("pageerror", lambda error: wrong.append(str(error)))
    it.on("request", lambda asked: wrong.append(asked.url) if _is_foreign(asked.url, running.url) else None)
    it.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    it.goto(address(running))
    it.wait_for_selector(".status.live")
    it.wait_for_selector("body:not(.empty)")
    yield it
    context.close()
    assert wrong == []


def _is_foreign(url: str, own: str) -> bool:
    return not url.startswith((own + "/", own.replace("http", "ws") + "/", "data:,", "blob:"))


def address(running: RunningDaemon, *options: str) -> str:
    words = ["view", "--url", running.url, "--token-file", str(running.token_file), *options]
    return deskhand(environment(None), *words).text


def shows(page: Any, conn: Connection) -> None:
    """Wait until the canvas holds the very pixels of the screen."""
    screen = Screen(conn)
    try:
        taken = screen.capture()
    finally:
        screen.close()
    expected = Image.frombytes("RGB", taken.screen, taken.rgb())
    for _ in range(100):
        if on_canvas(page).tobytes() == expected.tobytes():
            return
        page.wait_for_timeout(100)  # milliseconds: nothing tells that the last exact tile was drawn
    raise AssertionError("the canvas does not show the screen")


def on_canvas(page: Any) -> Image.Image:
    script = "() => new Promise((done) => document.getElementById('canvas').toBlob(async (blob) =>"
    script += " done(Array.from(new Uint8Array(await blob.arrayBuffer()))), 'image/png'))"
    return Image.open(io.BytesIO(bytes(page.evaluate(script)))).convert("RGB")


def primary(server: XServer) -> str:
    """The text that is selected."""
    words = ["xclip", "-o", "-selection", "primary"]
    return subprocess.run(words, env=server.env, capture_output=True, text=True, timeout=20, check=True).stdout


def outcome(page: Any, text: str) -> None:
    playwright.expect(page.locator("#outcomes")).to_contain_text(text, timeout=SECONDS)


def test_it_shows_the_desktop_as_it_changes(page: Any, conn: Connection, openbox_display: XServer) -> None:
    assert page.url.endswith("/live")
    shows(page, conn)
    with x_window(conn, openbox_display, "A window"):
        shows(page, conn)
        put_pixels(conn, conn.root, 400, 300, 333, 77, 0xCC8844)
        shows(page, conn)
    shows(page, conn)


def test_what_happens_is_told(page: Any, running: RunningDaemon) -> None:
    assert page.is_visible("#nothing")
    assert page.inner_text("#lease") == "nobody"
    assert not page.is_visible("#budget")
    running.act({"action": "click", "x": 640, "y": 400}, headers={"Deskhand-Session": "bot"})
    outcome(page, "click (640, 400)")
    assert not page.is_visible("#nothing")
    page.wait_for_selector("#marks svg circle", state="attached")
    running.act({"action": "key", "keys": "<b>nosuchkey</b>"})
    outcome(page, "<b>nosuchkey</b>")
    assert page.locator("#outcomes li").first.get_attribute("class") == "refused"
    assert page.locator("#outcomes b").count() == 0
    with running.client() as client:
        client.post("/outcome", json={"ok": False, "text": "the budget is spent", "used": 9, "limit": 10})
        client.post("/lease", json={"holder": "<i>invoices</i>", "ttl": 300})
    outcome(page, "the budget is spent")
    playwright.expect(page.locator("#budget-text")).to_have_text("9 of 10")
    playwright.expect(page.locator("#lease")).to_contain_text("<i>invoices</i> · ")
    assert page.inner_text("#viewers") == "only you"
    page.wait_for_selector("#marks svg", state="detached")  # it has faded


def test_a_person_takes_over(page: Any, running: RunningDaemon, conn: Connection, openbox_display: XServer) -> None:
    box = page.locator("#canvas").bounding_box()
    scale = box["width"] / 1280

    def at(x: float, y: float) -> tuple[float, float]:
        return box["x"] + (x + 0.5) * scale, box["y"] + (y + 0.5) * scale

    page.mouse.click(*at(500, 500))  # only shows so far
    page.keyboard.type("x")
    assert (core.query_pointer(conn).root_x, core.query_pointer(conn).root_y) != (500, 500)
    page.click("#take")
    page.wait_for_selector("body.mine")
    assert running.act({"action": "move", "x": 1, "y": 1}).status_code == 409
    script = 'read line; xprop -root -f TOLD 8u -set TOLD "$line"; read line'
    words = ["xterm", "-u8", "-T", "A terminal", "-geometry", "80x20+200+100", "-e", "sh", "-c", script]
    process = subprocess.Popen(words, env=openbox_display.env, stderr=subprocess.DEVNULL)
    try:
        x, y, width, height = windows.wait_window(conn, title="A terminal", timeout=30)["rect"]
        box = page.locator("#canvas").bounding_box()  # the banner has moved it
        middle = (x + width // 2, y + height // 2)
        page.mouse.click(*at(*middle))
        outcome(page, f"click ({middle[0]}, {middle[1]})")
        page.keyboard.type("grüße hello")
        outcome(page, "type a secret")
        page.keyboard.press("Enter")
        told = conn.atom("TOLD")
        for _ in range(300):
            value = core.get_property(conn, conn.root, told).value
            if value:
                break
            page.wait_for_timeout(50)
        assert value.decode("utf-8").rstrip("\0") == "grüße hello"
        # A double click selects a word: what was typed stands in the first line.
        page.mouse.dblclick(*at(x + 60, y + 8))
        for _ in range(300):
            if core.get_selection_owner(conn, core.ATOM_PRIMARY):
                break
            page.wait_for_timeout(50)
        assert primary(openbox_display) == "hello"
        # The window is dragged by its title: a press, moves, a release.
        page.mouse.move(*at(x + 100, y - 8))
        page.mouse.down()
        page.mouse.move(*at(x + 200, y + 60), steps=5)
        page.mouse.up()
        outcome(page, "release left button")
        page.mouse.wheel(0, 300)
        outcome(page, "scroll")
        page.keyboard.press("Control+Alt+q")
        page.wait_for_selector("body:not(.mine)")
        assert running.act({"action": "move", "x": 1, "y": 1}).json()["ok"]
    finally:
        process.terminate()
        process.wait()


def test_a_page_to_see_only_has_no_button(browser: Any, running: RunningDaemon) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address(running, "--see-only"))
    page.wait_for_selector(".status.live")
    assert not page.is_visible("#take")
    context.close()


def test_it_recovers(page: Any, running: RunningDaemon, openbox_display: XServer, conn: Connection) -> None:
    page.reload()
    page.wait_for_selector(".status.live")
    shows(page, conn)
    assert running.stop() == 0
    page.wait_for_selector("text=Not connected")
    assert page.is_visible("#retry")
    assert page.evaluate("getComputedStyle(document.getElementById('canvas')).filter").startswith("grayscale(1)")
    with daemon(
        openbox_display, running.token_file.parent, listen=running.listen, token_file=running.token_file
    ) as again:
        page.wait_for_selector(".status.live")
        put_pixels(conn, conn.root, 10, 10, 60, 60, 0x00AA55)
        shows(page, conn)
        again.act({"action": "move", "x": 8, "y": 9})
        outcome(page, "move to (8, 9)")
        assert not page.is_visible("#take")  # it was started without --control
    other = write_token(running.token_file.parent)
    with daemon(openbox_display, other.parent, listen=running.listen, token_file=other):
        page.wait_for_selector("text=This view has ended")


@pytest.mark.parametrize("width", [390, 1440])
def test_it_fits(browser: Any, running: RunningDaemon, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme="dark")
    page = context.new_page()
    page.goto(address(running))
    page.wait_for_selector("body:not(.empty)")
    running.act({"action": "key", "keys": "n" * 150})
    page.wait_for_selector("#outcomes li")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#canvas").bounding_box()
    assert 0.6 * (width if width < 800 else width - 336) < box["width"] <= width
    assert box["width"] / box["height"] == pytest.approx(1.6, rel=0.01)
    # By the keyboard alone: the buttons come one after the other.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"
    context.close()


def test_its_memory_stays_flat(page: Any, running: RunningDaemon, conn: Connection) -> None:
    session = page.context.new_cdp_session(page)

    def used() -> int:
        session.send("HeapProfiler.collectGarbage")
        return int(session.send("Runtime.getHeapUsage")["usedSize"])

    def busy(times: int) -> None:
        for n in range(times):
            put_pixels(conn, conn.root, n, n, 300, 300, 0xFFFFFF - 7 * n)
            running.act({"action": "move", "x": n, "y": n})
        outcome(page, f"move to ({times - 1}, {times - 1})")

    busy(60)
    before = used()
    busy(61)
    assert used() - before < 2_000_000
    assert page.locator("#outcomes li").count() <= 30
