"""The recorder: what stands in the files, also of a run that was killed, and that no secret does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand.errors import SetupError
from deskhand.trace import TraceRecorder, write_page
from deskhand.trace.redaction import MASK, Redactor
from deskhand.trace.steps import read_events

SECRET = "pä$$ 'w<o>rd\" & 7"
PIXELS = b"\x89PNG\r\n\x1a\nnot a picture, but bytes: \x00\xff\r\n"


def batch(*actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"actions": list(actions), "space": "screen", **more}


def answer(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"ok": True, "sent": "all", "results": list(results), "settled": True, "settle": "settled", **more}


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "trace.jsonl").read_text("utf-8").splitlines()]


def everything(directory: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(directory.iterdir()))


def test_a_session_is_one_line_an_event(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path / "a" / "trace", goal="write a file", facts={"display": ":7"})
    trace.say("first")
    trace.tool("computer_apps", [{"id": "a.desktop", "name": "A"}])
    trace.batch(
        batch({"action": "screenshot"}), answer({"action": "screenshot", "status": "ok"}), PIXELS, "png", 5, 0.5
    )
    trace.error("refused")
    page = trace.finish("done", "all is well", [{"name": "file", "ok": True}])
    events = lines(page.parent)
    assert [event["event"] for event in events] == ["start", "say", "tool", "batch", "error", "finish"]
    assert [event.get("step") for event in events] == [None, None, 1, 2, 3, 4]
    assert events[3]["started"] == 5
    assert events[3]["elapsed_s"] == 0.5
    summary = json.loads((page.parent / "summary.json").read_text())
    assert summary["outcome"] == "done"
    assert summary["counts"] == {"batches": 1, "actions": 1, "failed": 0, "tools": 1, "errors": 1, "approvals": 0}


def test_pictures_are_kept_to_the_byte_and_the_last_one_is_the_next_before(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="")
    for picture, kind in ((PIXELS, "png"), (b"\xff\xd8jpeg", "jpeg"), (None, "png"), (b"RIFFwebp", "webp")):
        trace.batch(batch(), answer(), picture, kind, 0, 0)  # type: ignore[arg-type]
    trace.batch(batch(), answer(), b"after", "png", 0, 0, before=b"looked at")
    assert [(e["before"], e["after"]) for e in lines(tmp_path)[1:]] == [
        (None, "0001.png"),
        ("0001.png", "0002.jpg"),
        ("0002.jpg", None),
        ("0002.jpg", "0003.webp"),
        ("0004.png", "0005.png"),
    ]
    assert (tmp_path / "0001.png").read_bytes() == PIXELS
    assert (tmp_path / "0002.jpg").read_bytes() == b"\xff\xd8jpeg"
    assert (tmp_path / "0003.webp").read_bytes() == b"RIFFwebp"
    assert (tmp_path / "0004.png").read_bytes() == b"looked at"
    with pytest.raises(ValueError, match="'gif' is none of png, jpeg, webp"):
        trace.batch(batch(), answer(), b"", "gif", 0, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("left", ["trace.jsonl", "index.html", "summary.json", "0001.png", "0012.jpg"])
def test_an_existing_trace_is_refused_and_left_alone(tmp_path: Path, left: str) -> None:
    (tmp_path / left).write_text("older")
    with pytest.raises(SetupError, match="already holds a trace") as caught:
        TraceRecorder(tmp_path, goal="")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == [left]
    assert (tmp_path / left).read_text() == "older"


def test_other_files_are_no_trace(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    TraceRecorder(tmp_path, goal="").finish("done")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_directory_that_can_not_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory, reason in ((tmp_path / "file", "not a directory"), (tmp_path / "file" / "x", "Not a directory")):
        with pytest.raises(SetupError, match=reason) as caught:
            TraceRecorder(directory, goal="")
        assert "\n" not in str(caught.value)


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    code = """
import os, sys
from deskhand.hand.errors import SetupError
from deskhand.trace import TraceRecorder
trace = TraceRecorder(sys.argv[1], goal="")
os.dup2(os.open("/dev/full", os.O_WRONLY), trace._file.fileno())
try:
    trace.say("x")
except SetupError as error:
    print(error)
    os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert "No space left on device" in done.stdout, done.stderr


def test_a_killed_run_leaves_a_readable_trace(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from deskhand.trace import TraceRecorder
trace = TraceRecorder(sys.argv[1], goal="to be killed")
trace.batch({"actions": [{"action": "wait", "seconds": 1}]}, {"ok": True}, b"picture", "png", 0, 1)
trace.say("the last words")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert [event["event"] for event in lines(tmp_path)] == ["start", "batch", "say"]
    # As after a power cut: a line that ends in its middle, in the middle of a character.
    with open(tmp_path / "trace.jsonl", "ab") as file:
        file.write('{"event":"say","text":"ä'.encode()[:-1])
    assert write_page(tmp_path).read_text("utf-8").count("the last words") >= 1
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["outcome"] is None
    assert summary["broken_lines"] == 1


def test_finish_again_changes_nothing(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    first = trace.finish("failed", "it broke")
    before = everything(tmp_path)
    assert trace.finish("done", "it did not") == first
    assert everything(tmp_path) == before
    with pytest.raises(RuntimeError, match="finished"):
        trace.say("too late")
    with pytest.raises(ValueError, match="'well' is none of"):
        trace.finish("well")  # type: ignore[arg-type]


@pytest.mark.parametrize(("error", "outcome"), [(ValueError("no\nluck"), "failed"), (KeyboardInterrupt(), "stopped")])
def test_an_exception_finishes_the_trace(tmp_path: Path, error: BaseException, outcome: str) -> None:
    with pytest.raises(type(error)), TraceRecorder(tmp_path, goal="g"):
        raise error
    assert lines(tmp_path)[-1]["outcome"] == outcome
    assert (tmp_path / "index.html").exists()


def test_threads_do_not_mix_lines(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    long = "x" * 20_000

    def record() -> None:
        for _ in range(20):
            trace.tool("t", long)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event["step"] for event in lines(tmp_path)[1:]] == list(range(1, 81))


def test_only_this_account_reads_a_trace(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    trace = TraceRecorder(directory, goal="g")
    trace.batch(batch(), answer(), b"x", "png", 0, 0)
    trace.finish("done")
    assert directory.stat().st_mode & 0o777 == 0o700
    names = ("0001.png", "index.html", "summary.json", "trace.jsonl")
    assert {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()} == dict.fromkeys(names, 0o600)


def test_what_no_json_holds_is_recorded_all_the_same(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="half a pair: \ud83d", facts={"path": Path("/x"), "set": {1}, "raw": b"abc"})
    trace.batch(batch({"action": "click", "x": float("nan"), "y": float("-inf")}), {"ok": False}, None, "png", 0, 0)
    trace.batch({"actions": "none"}, {"results": 3, "picture": {"base64": "QUJD", "width": 3}}, None, "png", 0, 0)
    trace.finish("done")
    events = lines(tmp_path)
    assert events[0]["facts"] == {"path": "/x", "set": [1], "raw": "(3 bytes)"}
    assert events[1]["envelope"]["actions"][0]["x"] == "nan"
    assert events[2]["answer"]["picture"] == {"width": 3}


def test_what_is_too_deep_or_too_long_is_recorded_in_a_word(tmp_path: Path) -> None:
    deep: Any = {"action": "type", "secret": True, "text": "at the bottom"}
    for _ in range(3000):
        deep = [deep]
    trace = TraceRecorder(tmp_path, goal="numbers and depth")
    trace.batch(
        batch({"action": "move", "x": 10**400, "y": -(10**5000)}, {"action": deep}), {"ok": False}, None, "png", 0, 0
    )
    trace.say("at the bottom")
    trace.model_turn(
        "m", given=None, reply='{"secret": ' + "[" * 900 + "]" * 900 + "}", text="", facts={}, started=0, elapsed_s=0
    )
    trace.finish("done")
    events, long = lines(tmp_path), "(a number that long)"
    assert events[1]["envelope"]["actions"][0] == {"action": "move", "x": long, "y": long}
    assert "(nested too deep)" in json.dumps(events[1])
    assert events[2]["text"] == MASK
    assert write_page(tmp_path).read_text()


def test_a_line_nobody_can_read_is_a_broken_line(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="one line too deep")
    trace.finish("done")
    with open(tmp_path / "trace.jsonl", "ab") as file:
        file.write(b"[" * 50_000 + b"]" * 50_000 + b"\n")
    assert read_events(tmp_path / "trace.jsonl")[1] == 1


# ---- secrets


def secret_everywhere(directory: Path, secret: str) -> TraceRecorder:
    """A run in which everything repeats ``secret``, from before it is known to after it is finished."""
    trace = TraceRecorder(directory, goal=f"log in with {secret}", title=secret, facts={"why": secret})
    trace.say(f"I shall type {secret}.")
    trace.tool("notes", {"list": [secret, {secret: secret}]})
    trace.batch(
        batch({"action": "type", "text": secret, "secret": True}, {"action": "type", "text": f"again {secret}"}),
        answer(
            {"action": "type", "status": "failed", "error": f"{secret!r} can not be typed; {json.dumps(secret)}"},
            window={"title": f"{secret}{secret} - Editor"},
        ),
        PIXELS,
        "png",
        0,
        0,
    )
    trace.say(f"It was {secret}")
    trace.error(f"later: {secret}")
    trace.batch(batch({"action": "clipboard_get"}), answer({"text": secret, "status": "ok"}), PIXELS, "png", 0, 0)
    trace.finish("failed", f"the end of {secret}", [{"name": "x", "ok": False, "expected": secret, "found": secret}])
    return trace


@pytest.mark.parametrize("secret", [SECRET, "hunter2", "тайна", "秘密の言葉", "two\nlines of it", "back\\slash\ttab"])
def test_a_secret_stands_in_no_file(tmp_path: Path, secret: str) -> None:
    secret_everywhere(tmp_path, secret)
    held = everything(tmp_path).decode("utf-8", "replace")
    for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        assert form not in held
    typed = lines(tmp_path)[3]["envelope"]["actions"]
    assert typed[0] == {"action": "type", "text": MASK, "secret": True}
    assert typed[1]["text"] == f"again {MASK}"
    # Twice in a row is masked once, so that the mask tells nothing.
    assert lines(tmp_path)[3]["answer"]["window"]["title"] == f"{MASK} - Editor"


@pytest.mark.parametrize("secret", ["7", "ok", "1234"])
def test_a_short_secret_leaves_no_hole_of_its_shape(tmp_path: Path, secret: str) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    trace.batch(
        batch({"action": "type", "text": secret, "secret": True}, {"action": "click", "x": 7, "y": 1234}),
        answer({"action": "type", "status": "ok", "error": f"a{secret}b"}),
        None,
        "png",
        0,
        0,
    )
    trace.tool("numbers", {"pin": 1234, "n": 7})
    event, tool = lines(tmp_path)[1:]
    assert event["envelope"]["actions"][1] == {"action": "click", "x": 7, "y": 1234}
    assert event["answer"]["results"][0] == {
        "action": "type",
        "status": "ok",
        "error": MASK if len(secret) < 4 else f"a{MASK}b",
    }
    assert secret not in map(str, tool["answer"].values())


@pytest.mark.parametrize(
    "action",
    [
        {"action": "type", "txet": "hunter2", "secret": True},
        {"action": "type", "text": "hunter2", "secret": "yes"},
        {"action": "tpye", "text": ["hunter2"], "secret": 1},
        {"action": "hunter2", "text": 1, "secret": True},
        {"action": "type", "text": {"value": "hunter2"}, "secret": True, "method": "hunter2"},
    ],
)
def test_a_refused_envelope_gives_no_secret_away(tmp_path: Path, action: dict[str, Any]) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    trace.batch(batch(action), {"ok": False, "sent": "none", "error": "unknown: 'hunter2'"}, None, "png", 0, 0)
    trace.finish("failed")
    assert b"hunter2" not in everything(tmp_path)


def test_text_that_is_no_secret_stays(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    trace.batch(batch({"action": "type", "text": "hello", "secret": False}), answer(), None, "png", 0, 0)
    trace.batch(batch({"action": "type", "text": "", "secret": True}), answer(note="hello"), None, "png", 0, 0)
    assert lines(tmp_path)[1]["envelope"]["actions"][0]["text"] == "hello"
    assert lines(tmp_path)[2]["answer"]["note"] == "hello"


@given(secret=st.text(min_size=1, max_size=30), around=st.text(max_size=10))
@settings(max_examples=300, deadline=None)
def test_any_secret_is_masked_in_any_text(secret: str, around: str) -> None:
    redactor = Redactor()
    redactor.learn({"actions": [{"action": "type", "text": secret, "secret": True}]})
    if not secret.strip() or secret in MASK:
        return
    assert secret not in redactor.clean({"error": f"{around}{secret}{secret}{around}"})["error"].replace(MASK, "")


ACTION = {"action": "type", "text": 'my "own" pass-word', "secret": True}
ENVELOPE = {"actions": [{"action": "key", "keys": "a"}, ACTION]}
AS_JSON = json.dumps(ENVELOPE)


@pytest.mark.parametrize(
    "reply",
    [
        {"tool_calls": [{"function": {"name": "computer_act", "arguments": AS_JSON}}]},
        [{"type": "function_call", "arguments": json.dumps(ENVELOPE, indent=1)}],
        [{"type": "tool_use", "input": ENVELOPE}],
        [{"function_call": {"name": "computer_act", "args": ENVELOPE}}],
        {"content": f"I do it.\n<tool_call>\n{AS_JSON}\n</tool_call> and [then] {{more}}"},
        {"content": json.dumps({"arguments": AS_JSON})},
        {"tool_calls": [{"function": {"name": "computer_act", "arguments": AS_JSON[: AS_JSON.index(', "secret')]}}]},
        {"tool_calls": [{"function": {"name": "computer_act", "arguments": AS_JSON[:-14]}}]},
    ],
    ids=["chat", "openai", "anthropic", "google", "in text", "twice", "cut before it says so", "cut"],
)
def test_a_secret_is_masked_in_the_reply_that_first_says_it(tmp_path: Path, reply: Any) -> None:
    """Before any batch, and also when there never is one: the reply may be refused, or the run be killed."""
    trace = TraceRecorder(tmp_path, goal="g")
    trace.model_turn("m", given=[], reply=reply, text="", facts={}, started=0, elapsed_s=0)
    write_page(tmp_path)
    assert b"pass-word" not in everything(tmp_path)
    assert b"computer_act" in everything(tmp_path) or "tool_calls" not in str(reply)


def test_a_secret_in_the_place_of_a_fields_name(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    told = answer(ok=False, error="action 0 (type) has no field 'pass-word': use text")
    trace.batch(batch({"action": "type", "pass-word": 1, "secret": True}), told, None, "png", 0, 0)
    trace.finish("done")
    assert b"pass-word" not in everything(tmp_path)


def test_what_a_person_is_asked_holds_no_secret(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    trace.approval({"verb": "type", "source": "s", "reason": "r", "facts": ACTION}, "nobody", 0, 0)
    trace.error('it said: my "own" pass-word')
    trace.finish("done")
    assert b"pass-word" not in everything(tmp_path)
    assert lines(tmp_path)[1]["outcome"] == "nobody"


@given(st.text(alphabet='{}[]":,secrt xu\\0', max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_recorded(text: str) -> None:
    redactor = Redactor()
    redactor.learn({"reply": text})
    assert isinstance(redactor.clean({"reply": text})["reply"], str)


def test_a_text_of_brackets_takes_no_time() -> None:
    redactor = Redactor()
    redactor.learn("secret" + "[" * 200_000)
    redactor.learn("secret" + '{"a":' * 200_000)


def test_the_beginning_of_a_long_secret_is_masked_too(tmp_path: Path) -> None:
    """An error quotes what is wrong cut short."""
    secret = "correct horse battery staple " * 4
    trace = TraceRecorder(tmp_path, goal="g")
    told = answer(ok=False, error=f"action 0: there is no action {secret[:60]!r}")
    trace.batch(batch({"action": secret, "text": "x", "secret": True}), told, None, "png", 0, 0)
    trace.error(f"it said {secret[:37]}... and {secret[:25]}")
    trace.finish("done")
    assert b"correct horse" not in everything(tmp_path)
    assert b"staple" not in everything(tmp_path)
    assert b"and " in everything(tmp_path)
