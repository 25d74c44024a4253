"""The page, in the browser a person opens it with."""

from __future__ import annotations

import io
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deskhand.trace import TraceRecorder, write_page

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SWITCHES = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --no-first-run "
    "--disable-dev-shm-usage --window-size=1280,900 --remote-debugging-pipe"
)
DEADLINE_S = 60.0


class Browser:
    """One page of a Chromium (Chrome DevTools Protocol; messages end with a NUL byte)."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def open(self, page: Path, fragment: str = "") -> None:
        """Load ``page`` anew; back when its load event is over, pictures included."""
        # From a blank page: an address that differs in its fragment alone would load nothing.
        for url in ("about:blank", page.as_uri() + fragment):
            self.events.clear()
            loader = self.call("Page.navigate", url=url)["loaderId"]
            self._until(lambda message, loader=loader: _is_load(message, loader))

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; of a promise, what it becomes."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def complaints(self) -> list[str]:
        """What the page's console holds, exceptions and refusals of the Content-Security-Policy included."""
        names = (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        )
        return [json.dumps(event) for event in self.events if event.get("method") in names]

    def requested(self) -> list[str]:
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent if not params["request"]["url"].startswith("data:")]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        number = self._last
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda reply: reply.get("id") == number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _until(self, wanted: Any) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE_S
        for event in self.events:
            if wanted(event):
                return event
        while True:
            while b"\0" not in self._buffer:
                ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
                assert ready, "the browser did not answer in time"
                data = os.read(self._from, 1 << 16)
                assert data, "the browser ended"
                self._buffer += data
            line, _, self._buffer = self._buffer.partition(b"\0")
            message: dict[str, Any] = json.loads(line)
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message


def _is_load(message: dict[str, Any], loader: str) -> bool:
    facts = message.get("params", {})
    return message.get("method") == "Page.lifecycleEvent" and (facts["name"], facts["loaderId"]) == ("load", loader)


@contextmanager
def browser(directory: Path) -> Iterator[Browser]:
    """A Chromium with a profile in ``directory``, ended on the way out."""
    assert CHROMIUM is not None
    browser_in, to_browser = os.pipe()
    from_browser, browser_out = os.pipe()
    # The protocol's descriptors are 3 and 4 in the browser; moved up first, as ours may be one of them.
    move = (
        "import fcntl, os, sys; ends = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]];"
        "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execv(sys.argv[3], sys.argv[3:])"
    )
    words = [sys.executable, "-c", move, str(browser_in), str(browser_out)]
    process = subprocess.Popen(
        [*words, CHROMIUM, *SWITCHES.split(), f"--user-data-dir={directory / 'profile'}"],
        pass_fds=[browser_in, browser_out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(directory)},
    )
    os.close(browser_in)
    os.close(browser_out)
    try:
        yield Browser(to_browser, from_browser)
    finally:
        os.close(to_browser)  # the end of its input ends the browser
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(from_browser)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("the page is judged in Chromium, and there is none: apt-get install chromium")
    with browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one


def png(colour: str, size: tuple[int, int] = (640, 400)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def answer(picture: bytes | None = None, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"ok": True, "sent": "all", "results": [], "settled": True, "settle": "settled", **more}
    if picture is not None and "picture" not in given:
        width, height = Image.open(io.BytesIO(picture)).size
        given["picture"] = {"format": "png", "width": width, "height": height, "scale": width / 1280, "sequence": 1}
    return given


def record(directory: Path) -> Path:
    """Five steps: a picture, a list, a batch of every mark, a failure, the end."""
    trace = TraceRecorder(directory, goal="Write a file", title="run 7", facts={"screen": [1280, 800], "model": "m"})
    first, second = png("#204060"), png("#206040")
    trace.say("I look.")
    trace.batch({"actions": [{"action": "screenshot"}], "space": "screen"}, answer(first), first, "png", 0, 0.1)
    trace.say("Which are there?")
    trace.tool("computer_apps", {"applications": [{"id": "e.desktop", "name": "Editor"}]})
    actions: list[dict[str, Any]] = [
        {"action": "click", "x": 639, "y": 399, "count": 2},
        {"action": "drag", "path": [[100, 100], [200, 150], [300, 100]]},
        {"action": "scroll", "x": 400, "y": 600, "dy": 3},
        {"action": "type", "text": "hello\nyou"},
        {"action": "zoom", "region": [10, 10, 110, 60]},
    ]
    results = [{"action": a["action"], "status": "ok"} for a in actions]
    results[0]["point"] = [639, 399]
    third = answer(
        second, results=results, settle="animating", settled=False, settle_ms=1234.4, moving=[[20, 40, 60, 80]]
    )
    third["picture"]["region"] = None
    trace.batch({"actions": actions, "space": "screen"}, third, second, "png", 0, 2.34)
    trace.batch(
        {"actions": [{"action": "key", "keys": "ctrl+s"}, {"action": "wait", "seconds": 1}], "space": "screen"},
        answer(ok=False, sent="part", results=[{"status": "failed", "error": "no focus"}, {"status": "skipped"}]),
        None,
        "png",
        0,
        0.2,
    )
    return trace.finish(
        "failed", "It is not there.", [{"name": "the file", "ok": False, "expected": "x", "found": "y"}]
    )


def text(page: Browser, selector: str) -> str:
    value: str = page.run(f"document.querySelector({json.dumps(selector)}).innerText")
    return value


def test_the_steps_are_on_the_page(tmp_path: Path, chromium: Browser) -> None:
    chromium.open(record(tmp_path))
    assert chromium.complaints() == []
    assert text(chromium, "h1") == "Write a file"
    assert text(chromium, "#outcome") == "failed"
    head = text(chromium, "header")
    for some in ("It is not there.", "the file", "expected", "run 7", "model", "batches", "1280×800"):
        assert some in head
    entries = chromium.run("[...document.querySelectorAll('#timeline li')].map((item) => item.innerText)")
    expected = [
        ["I look.", "take a picture", "settled"],
        ["Which are there?", "computer_apps", "1 item"],
        ["double click (639, 399)", 'type "hello\\nyou"', "drag (100, 100) → (300, 100)", "1234 ms of 2.3 s"],
        ["press ctrl+s", "no focus"],
        ["failed"],
    ]
    for entry, words in zip(entries, expected, strict=True):
        for some in words:
            assert some in entry
    chromium.open(tmp_path / "index.html", "#step-2")
    assert "Editor · e.desktop" in text(chromium, "#words")


def test_it_opens_where_there_is_something_to_see(tmp_path: Path, chromium: Browser) -> None:
    trace = TraceRecorder(tmp_path, goal="Look")
    trace.tool("computer_apps", {"applications": [{"id": "e.desktop", "name": "Editor"}]})
    picture = png("#204060")
    for _ in range(2):
        trace.batch({"actions": [{"action": "screenshot"}], "space": "screen"}, answer(picture), picture, "png", 0, 0.1)
    chromium.open(trace.finish("done", "Seen.", []))
    assert text(chromium, "h2") == "Step 2 of 4"
    assert chromium.run("document.querySelectorAll('#pictures img').length") == 1


def test_marks_stand_where_the_actions_acted(tmp_path: Path, chromium: Browser) -> None:
    chromium.open(record(tmp_path), "#step-3")
    before, after = "document.querySelectorAll('figure svg')[0]", "document.querySelectorAll('figure svg')[1]"
    assert chromium.run(f"{before}.getAttribute('viewBox')") == "0 0 640 400"
    # The middle of screen pixel 639 on a picture of half the size.
    ring = chromium.run(f"['cx', 'cy'].map((name) => Number({before}.querySelector('circle').getAttribute(name)))")
    assert ring == [319.75, 199.75]
    drag = chromium.run(f"{before}.querySelector('polyline').getAttribute('points')")
    assert drag == "50.25,50.25 100.25,75.25 150.25,50.25"
    numbers = chromium.run(f"[...{before}.querySelectorAll('text')].map((node) => node.textContent)")
    assert numbers == ["1", "2", "3", "5"]
    # The box stands a little outside of what moved: (10, 20) to (40, 60) on the picture.
    box = chromium.run(
        f"['x', 'y', 'width', 'height'].map((name) => Number({after}.querySelector('rect').getAttribute(name)))"
    )
    assert box[0] < 10 < 40 < box[0] + box[2]
    assert box[1] < 20 < 60 < box[1] + box[3]
    chromium.press("m")
    assert chromium.run("document.querySelectorAll('figure svg').length") == 0


def test_keys_page_and_every_step_has_an_address(tmp_path: Path, chromium: Browser) -> None:
    chromium.open(record(tmp_path))
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home", "ArrowLeft", "n", "n", "n"):
        chromium.press(key)
        assert chromium.run("location.hash") == "#step-" + text(chromium, "h2").split()[1]
        seen.append(chromium.run("location.hash.slice(6)"))
    assert seen == ["2", "3", "2", "5", "5", "1", "1", "4", "5", "4"]
    chromium.open(tmp_path / "index.html", "#step-3")
    assert text(chromium, "h2") == "Step 3 of 5"
    assert chromium.run("document.querySelector('[aria-current]').getAttribute('href')") == "#step-3"
    clicked = "addEventListener('hashchange', done), document.querySelectorAll('#timeline a')[3].click()"
    chromium.run(f"new Promise((done) => ({clicked}))")
    assert text(chromium, "h2") == "Step 4 of 5"
    chromium.open(tmp_path / "index.html", "#step-99")
    assert text(chromium, "h2") == "Step 5 of 5"


def test_before_and_after_can_be_compared(tmp_path: Path, chromium: Browser) -> None:
    chromium.open(record(tmp_path), "#step-3")
    captions = "[...document.querySelectorAll('figcaption b')].map((node) => node.innerText)"
    assert chromium.run(captions) == ["Before", "After"]
    assert chromium.run(
        "[...document.querySelectorAll('figure img')].every((img) => img.alt && img.naturalWidth === 640)"
    )
    chromium.press("b")
    assert chromium.run(captions) == ["After"]
    chromium.press("b")
    assert chromium.run(captions) == ["Before"]
    for mode, images in (("slider", 2), ("difference", 2), ("both", 2)):
        chromium.run(f"document.querySelector('[data-mode={mode}]').click()")
        assert chromium.run("document.querySelectorAll('figure img').length") == images
    chromium.run("document.querySelector('[data-mode=slider]').click()")
    chromium.run("document.querySelector('input[type=range]').focus()")
    chromium.press("ArrowRight")
    assert text(chromium, "h2") == "Step 3 of 5"  # the arrow was the slider's
    assert chromium.run("document.querySelector('img.over').style.clipPath") == "inset(0px 0px 0px 51%)"
    assert chromium.complaints() == []


def test_the_raw_record_is_there(tmp_path: Path, chromium: Browser) -> None:
    chromium.open(record(tmp_path), "#step-4")
    opened = "document.querySelector('#raw').addEventListener('toggle', done)"
    chromium.run(f"new Promise((done) => ({opened}, document.querySelector('#raw summary').click()))")
    raw = json.loads(chromium.run("document.querySelector('#raw pre').textContent"))
    assert raw == json.loads((tmp_path / "trace.jsonl").read_text().splitlines()[6])


HOSTILE = [
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 1</script>",
    "<!--<script>",
    "<img src=x onerror='window.hit = 1'>",
    '"><svg onload=window.hit=1>',
    "javascript:window.hit=1",
    "{{data}}{{script}}{{pictures}}",
    "\u2028\u2029\x00\x1b[31m\ud83d",
    "</title></style></noscript></pre><iframe src='https://example.invalid/'>",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_only_text(tmp_path: Path, chromium: Browser, hostile: str) -> None:
    trace = TraceRecorder(tmp_path, goal=hostile, title=hostile, facts={hostile: hostile, "screen": hostile})
    picture = png("black")
    trace.say(hostile)
    trace.tool(hostile, {"list": [{"name": hostile, "id": hostile}], "error": hostile})
    actions = [{"action": name, "text": hostile, "app": hostile, "keys": hostile} for name in ("type", "launch", "key")]
    actions += [{"action": hostile, hostile: hostile}, {"action": "click", "x": hostile, "button": hostile}]
    trace.batch(
        {"actions": actions, "space": {hostile: hostile}},
        answer(
            picture,
            ok=False,
            sent=hostile,
            error=hostile,
            settle=hostile,
            window={"title": hostile},
            moving=[hostile, [hostile] * 4],
            results=[{"status": hostile, "error": hostile, "point": hostile, hostile: hostile}] * 5,
        ),
        picture,
        "png",
        0,
        0,
    )
    trace.error(hostile)
    page = trace.finish("failed", hostile, [{"name": hostile, "ok": False, hostile: hostile}])
    chromium.open(page, "#step-1")
    elements = "document.querySelectorAll('script, iframe, svg, img, style').length"
    for step in (1, 2, 3, 4):
        assert text(chromium, "h2") == f"Step {step} of 4"
        assert chromium.run("[...document.images].every((img) => img.src.startsWith('data:image/png;base64,'))")
        assert chromium.run("document.querySelectorAll('iframe, [onerror], [onload]').length") == 0
        chromium.press("ArrowRight")
    # The page's own: its data, its program, one picture and its style; the last step shows the picture once.
    assert chromium.run(elements) == 5
    assert chromium.run("typeof window.hit") == "undefined"
    assert chromium.complaints() == []
    assert chromium.requested() == [page.as_uri()]
    assert chromium.run("document.getElementById('goal').textContent") == hostile


def test_a_script_that_got_in_would_not_run(tmp_path: Path, chromium: Browser) -> None:
    page = record(tmp_path)
    whole = page.read_text("utf-8").replace(
        "<header", "<script>window.hit = 1</script><img src=x onerror='hit=1'><header"
    )
    page.write_text(whole, "utf-8")
    chromium.open(page)
    assert chromium.run("typeof window.hit") == "undefined"
    assert text(chromium, "h1") == "Write a file"


def test_many_megabytes_of_pictures_stay_files(tmp_path: Path, chromium: Browser) -> None:
    record(tmp_path)
    page = write_page(tmp_path, embedded_at_most=100)
    assert b"base64," not in page.read_bytes()
    chromium.open(page, "#step-3")
    assert chromium.run("[...document.images].map((img) => img.naturalWidth)") == [640, 640]
    assert "keep the directory together" in text(chromium, "#note")
    assert chromium.complaints() == []
    (tmp_path / "0001.png").unlink()
    chromium.open(write_page(tmp_path), "#step-3")
    assert "0001.png is not beside the trace" in text(chromium, "#pictures")


def test_one_file_is_enough(tmp_path: Path, chromium: Browser) -> None:
    page = record(tmp_path / "trace")
    mailed = tmp_path / "mailed.html"
    mailed.write_bytes(page.read_bytes())
    chromium.open(mailed, "#step-3")
    assert chromium.run("[...document.images].map((img) => img.naturalWidth)") == [640, 640]
    assert chromium.requested() == [mailed.as_uri()]


def test_a_trace_names_no_file_outside_its_directory(tmp_path: Path) -> None:
    (tmp_path / "0009.png").write_bytes(b"outside")
    inside = tmp_path / "trace"
    inside.mkdir()
    events = [{"event": "batch", "before": "../0009.png", "after": str(tmp_path / "0009.png"), "answer": {"ok": True}}]
    (inside / "trace.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert b"data:image/png" not in write_page(inside).read_bytes()


def test_no_width_needs_sideways_scrolling(tmp_path: Path, chromium: Browser) -> None:
    long = "unbroken" * 60
    trace = TraceRecorder(tmp_path, goal=long, title=long, facts={"model": long, long: 1})
    trace.say(long)
    trace.tool(long, [long, {"name": long, "id": long}])
    actions = [{"action": "launch", "app": long}, {"action": "type", "text": long}]
    results = [{"status": "ok", "note": long}, {"status": "failed", "error": long}]
    first = png("black", (1280, 800))
    trace.batch({"actions": actions}, answer(first, ok=False, results=results, window=long), first, "png", 0, 0)
    trace.batch({"actions": actions}, answer(first, error=long, settle=long), png("blue"), "png", 0, 0)
    trace.finish("done", long, [{"name": long, "ok": True, "expected": long, long: long}])
    for width in (360, 420, 1280, 2200):
        chromium.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        try:
            for step in (1, 2, 3, 4):
                chromium.open(tmp_path / "index.html", f"#step-{step}")
                assert chromium.run("document.documentElement.scrollWidth <= innerWidth"), (width, step)
        finally:
            chromium.call("Emulation.clearDeviceMetricsOverride")


def test_an_empty_trace_and_a_killed_one_have_a_page(tmp_path: Path, chromium: Browser) -> None:
    TraceRecorder(tmp_path, goal="nothing yet")
    chromium.open(write_page(tmp_path))
    assert text(chromium, "#outcome") == "unfinished"
    assert "without finishing" in text(chromium, "#note")
    chromium.press("ArrowRight")
    assert chromium.complaints() == []
