"""Requests to answers and exit statuses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand.answering import ERROR, FAILED, NO_DISPLAY, OK, REFUSED, answer, error_reply, status_of
from deskhand.hand.applications import UnknownApplication
from deskhand.hand.errors import (
    ActionFailed,
    BatchRefused,
    CaptureFailed,
    DisplayLost,
    DisplayTimeout,
    NoDisplay,
    RequestFailed,
    SetupError,
    Unsupported,
    in_one_line,
)
from deskhand.hand.hand import Hand
from deskhand.testing import XServer, xvfb

FIELDS = {"ok", "sent", "results", "settled", "settle", "settle_ms", "moving", "error", "kind"}


@pytest.fixture(scope="module")
def hand() -> Iterator[Hand]:
    with xvfb() as server, Hand(server.display) as hand:
        yield hand


@pytest.mark.parametrize(
    ("error", "status", "kind", "sent"),
    [
        (BatchRefused("x", 3), REFUSED, "refused", "none"),
        (UnknownApplication("x", []), REFUSED, "refused", "none"),
        (Unsupported("x"), REFUSED, "unsupported", "none"),
        (ActionFailed("x"), FAILED, "failed", "part"),
        (CaptureFailed("x"), FAILED, "failed", "unknown"),
        (RequestFailed("BadWindow", "GetGeometry", 5), FAILED, "failed", "unknown"),
        (NoDisplay("x"), NO_DISPLAY, "no_display", "none"),
        (DisplayLost("x"), NO_DISPLAY, "lost", "unknown"),
        (DisplayTimeout("x"), NO_DISPLAY, "timeout", "unknown"),
        (SetupError("x"), ERROR, "failed", "none"),
        (KeyError("x"), ERROR, "fault", "unknown"),
    ],
)
def test_every_error_has_its_status(error: Exception, status: int, kind: str, sent: str) -> None:
    reply = error_reply(error)
    assert (reply.status, status_of(error)) == (status, status)
    assert (reply.answer["kind"], reply.answer["sent"], reply.answer["ok"]) == (kind, sent, False)
    assert set(reply.answer) >= FIELDS
    assert reply.picture is None
    json.dumps(reply.answer)


def test_an_errors_facts_are_in_the_answer_and_replace_nothing() -> None:
    body = error_reply(BatchRefused("no", 1, near=["a"], ok=True, sent="all")).answer
    assert (body["near"], body["index"], body["ok"], body["sent"]) == (["a"], 1, False, "none")


def test_errors_are_one_line() -> None:
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError("two\n  lines")
    words = in_one_line(caught.value)
    assert words.startswith("a fault in deskhand itself: RuntimeError at test_answering.py:")
    assert words.endswith(": two lines. Please report it")
    assert in_one_line(BatchRefused("two\nlines")) == "two lines"
    assert in_one_line(ValueError("a\nb")) == "a b"


class TestRequests:
    def test_info(self, hand: Hand) -> None:
        reply = answer(hand, {"request": "info"})
        assert reply.status == OK
        assert reply.answer["size"] == [1280, 800]

    def test_windows(self, hand: Hand) -> None:
        assert answer(hand, {"request": "windows"}) == ({"windows": []}, None, OK)

    def test_a_batch_with_its_name(self, hand: Hand) -> None:
        reply = answer(hand, {"request": "act", "actions": [{"action": "cursor_position"}]})
        assert reply.status == OK
        assert reply.answer["ok"]

    def test_applications(self, hand: Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "applications").mkdir()
        (tmp_path / "applications" / "one.desktop").write_text(
            "[Desktop Entry]\nType=Application\nName=One\nExec=true\n"
        )
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.setenv("XDG_DATA_DIRS", os.devnull)
        assert [app["id"] for app in answer(hand, {"request": "apps"}).answer["apps"]] == ["one"]
        found = answer(hand, {"request": "find", "app": "ONE"})
        assert found.status == OK
        assert found.answer["id"] == "one"
        missing = answer(hand, {"request": "find", "app": "Onne"})
        assert missing.status == REFUSED
        assert "unknown application 'Onne'" in missing.answer["error"]

    @pytest.mark.parametrize(
        ("fields", "size", "form"),
        [
            ({}, [1280, 800], "png"),
            ({"region": [10, 10, 30, 20]}, [20, 10], "png"),
            ({"max_edge": 128}, [128, 80], "png"),
            ({"cursor": True}, [1280, 800], "png"),
        ],
    )
    def test_a_screenshot(self, hand: Hand, fields: dict[str, Any], size: list[int], form: str) -> None:
        reply = answer(hand, {"request": "screenshot", **fields})
        assert reply.status == OK
        assert reply.picture is not None
        facts = reply.answer["picture"]
        assert ([facts["width"], facts["height"]], facts["format"]) == (size, form)
        assert facts["sequence"] > 0
        assert len(facts["hash"]) == 40

    @pytest.mark.parametrize(
        ("request_", "sentence"),
        [
            ({"request": "dance"}, "there is no request 'dance': use act, screenshot"),
            ({"request": None}, "there is no request"),
            ({"request": ["act"]}, "there is no request"),
            ({"request": "x" * 500}, "there is no request"),
            ({"request": "info", "size": 1}, "the request info has no field 'size'"),
            ({"request": "windows", "actions": []}, "the request windows has no field 'actions'"),
            ({"request": "find"}, "the request find needs app"),
            ({"request": "find", "app": 5}, "the request find needs app"),
            ({"request": "find", "app": ""}, "name is empty"),
            ({"request": "find", "app": "../x"}, "../x"),
            ({"request": "screenshot", "actions": []}, "picture has no field 'actions'"),
            ({"request": "screenshot", "region": [0, 0, 5000, 5]}, "is not inside the 1280x800 screen"),
            ({"request": "screenshot", "format": "gif"}, "format must be one of"),
            ({"request": "act"}, "needs a list of actions"),
            ([], "a batch is an object"),
            (None, "a batch is an object"),
        ],
    )
    def test_what_is_refused(self, hand: Hand, request_: Any, sentence: str) -> None:
        reply = answer(hand, request_)
        assert (reply.status, reply.answer["ok"], reply.answer["sent"]) == (REFUSED, False, "none")
        assert sentence in reply.answer["error"]
        assert "\n" not in reply.answer["error"]

    def test_looking_that_fails_has_sent_nothing(self, display: XServer) -> None:
        gone = Hand(":4711")
        for name in ("screenshot", "windows", "info"):
            reply = answer(gone, {"request": name})
            assert (reply.status, reply.answer["sent"]) == (NO_DISPLAY, "none")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(["act", "screenshot", "windows", "find", "info", ""]),
    fields=st.dictionaries(st.sampled_from(["actions", "region", "app", "format", "max_edge", "cursor", "x"]), JSON),
)
def test_any_request_has_an_answer(hand: Hand, name: str, fields: dict[str, Any]) -> None:
    reply = answer(hand, {"request": name, **fields})
    assert reply.status in (OK, REFUSED)
    json.dumps(reply.with_base64())
