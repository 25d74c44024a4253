"""``POST /act`` and what only looks: answers, pictures, keys that are answered from memory, clients that go away."""

from __future__ import annotations

import base64
import io
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image

from deskhand.testing import XServer
from deskhand.testing.received import Received, fixture_window, pressed
from tests.computerd.daemons import RunningDaemon, until

LOOK = {"actions": [{"action": "screenshot"}]}
QUICK = {"mode": "none"}


@pytest.fixture
def window(server: XServer) -> Iterator[Received]:
    with fixture_window(server) as received:
        received.forget()
        yield received


def test_the_picture_is_a_part_of_the_answer(running: RunningDaemon) -> None:
    with running.client() as client:
        answer = client.post("/act", json=LOOK)
        kind, _, boundary = answer.headers["content-type"].partition("; boundary=")
        assert kind == "multipart/mixed"
        parts = answer.content.split(b"--" + boundary.strip('"').encode())
        assert len(parts) == 4
        (facts_head, facts), (picture_head, picture) = (part.split(b"\r\n\r\n", 1) for part in parts[1:3])
        assert b"application/json" in facts_head
        assert b"image/png" in picture_head
        told = json.loads(facts)
        image = Image.open(io.BytesIO(picture[:-2]))
        image.load()
        assert image.size == (told["picture"]["width"], told["picture"]["height"]) == (1280, 800)


def test_the_picture_as_base64(running: RunningDaemon) -> None:
    with running.client(Accept="application/json") as client:
        batch = {**LOOK, "picture": {"format": "jpeg", "max_edge": 100}}
        told = client.post("/act", json=batch).json()
        assert Image.open(io.BytesIO(base64.b64decode(told["picture"]["base64"]))).format == "JPEG"


def test_a_failed_action_is_an_answer(running: RunningDaemon) -> None:
    answer = running.act(
        {"action": "wait_window", "title": "there is none", "timeout": 0}, {"action": "move", "x": 1, "y": 1}
    )
    assert answer.status_code == 200
    assert [one["status"] for one in answer.json()["results"]] == ["failed", "skipped"]


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"", 422, "refused"),
        (b"{", 422, "refused"),
        (b"[]", 422, "refused"),
        (b'{"actions": [{"action": "wait", "seconds": 0}], "actions": []}', 422, "refused"),
        (b'{"actions": [{"action": "wait", "seconds": NaN}]}', 422, "refused"),
        (b"[" * 100_000, 422, "refused"),
        (b'"\xff"', 422, "refused"),
        (b'{"actions": [{"action": "click", "x": 5000, "y": 5}]}', 409, "not_now"),
        (b'{"actions": [{"action": "key", "keys": "nokey"}]}', 409, "not_now"),
        (b'{"actions": [{"action": "type", "text": "\\ud800"}]}', 409, "not_now"),
        (b'{"actions": [{"action": "wait", "seconds": 0}], "expect": {"sequence": 99}}', 409, "not_now"),
        (b'{"actions": [{"action": "launch", "app": "Firefox"}]}', 501, "unsupported"),
        (b'{"actions": [{"action": "quit", "window": 7}]}', 501, "unsupported"),
    ],
    ids=range(13),
)
def test_a_problem_says_what_to_do(running: RunningDaemon, body: bytes, status: int, kind: str) -> None:
    with running.client(**{"Content-Type": "application/json"}) as client:
        answer = client.post("/act", content=body)
    problem = answer.json()
    assert (answer.status_code, problem["kind"], problem["sent"]) == (status, kind, "none")
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["detail"]
    assert "\n" not in problem["detail"]


def test_a_key_is_answered_from_memory(running: RunningDaemon, window: Received) -> None:
    key = {"Idempotency-Key": "one"}
    first = running.act({"action": "click", "x": 30, "y": 31}, headers=key)
    again = running.act({"action": "click", "x": 30, "y": 31}, headers=key)
    assert first.content == again.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    other = running.act({"action": "click", "x": 99, "y": 99}, headers=key)
    assert (other.status_code, other.json()["kind"], other.json()["sent"]) == (422, "key_reused", "none")
    refused = running.act({"action": "click", "x": 9999, "y": 1}, headers={"Idempotency-Key": "two"})
    assert (
        running.act({"action": "click", "x": 9999, "y": 1}, headers={"Idempotency-Key": "two"}).content
        == refused.content
    )
    for wrong in ("", "x" * 201):
        assert running.act({"action": "wait", "seconds": 0}, headers={"Idempotency-Key": wrong}).status_code == 422
    running.act({"action": "move", "x": 1, "y": 1})
    assert [event["at"] for event in window.all("press")] == [[30, 31]]


def test_a_second_request_with_the_key_waits_for_the_first(running: RunningDaemon, window: Received) -> None:
    answers: list[bytes] = []

    def ask() -> None:
        answer = running.act(
            {"action": "click", "x": 40, "y": 41}, {"action": "wait", "seconds": 1}, headers={"Idempotency-Key": "same"}
        )
        answers.append(answer.content)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 5
    assert len(set(answers)) == 1
    assert [event["at"] for event in window.all("press")] == [[40, 41]]


def _send(running: RunningDaemon, body: dict[str, Any], *headers: str) -> socket.socket:
    """A batch whose answer nobody reads yet."""
    content = json.dumps(body).encode()
    lines = (
        "POST /act HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {running.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *headers,
    )
    sock = socket.create_connection(running.address, 10)
    sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
    return sock


def _post(running: RunningDaemon, body: dict[str, Any], key: str) -> httpx2.Response:
    """The same bytes as ``_send`` sends."""
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    with running.client(**headers) as client:
        return client.post("/act", content=json.dumps(body).encode())


def test_a_client_that_goes_away_stops_its_batch(running: RunningDaemon, server: XServer, window: Received) -> None:
    wait = {"action": "wait", "seconds": 50}
    batch = {"actions": [{"action": "mouse_down", "x": 5, "y": 5}, wait, {"action": "click", "x": 77, "y": 77}]}
    with _send(running, batch, "Idempotency-Key: lost"):
        window.until("press")
    until(lambda: pressed(server) == [])
    assert running.act({"action": "move", "x": 6, "y": 6}).json()["ok"]
    assert [event["at"] for event in window.all("press")] == [[5, 5]]
    # Who asks again is told what became of it, and nothing is done again.
    answer = _post(running, batch, "lost")
    assert answer.headers["idempotency-replayed"] == "true"
    assert answer.json()["sent"] in ("part", "unknown")
    assert [event["at"] for event in window.all("press")] == [[5, 5]]


def test_with_one_key_the_batch_goes_on_as_long_as_somebody_waits(
    running: RunningDaemon, server: XServer, window: Received
) -> None:
    batch = {"actions": [{"action": "click", "x": 5, "y": 5}, {"action": "wait", "seconds": 2}], "settle": QUICK}
    answers: list[Any] = []
    before = _metric(running, "deskhand_answers_repeated_total")
    with _send(running, batch, "Idempotency-Key: shared"):
        window.until("press")

        second = threading.Thread(target=lambda: answers.append(_post(running, batch, "shared")))
        second.start()
        until(lambda: _metric(running, "deskhand_answers_repeated_total") > before)
    second.join()
    assert answers[0].json()["ok"]
    assert len(window.all("press")) == 1


def _metric(running: RunningDaemon, name: str) -> float:
    with running.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(name + " ")).split()[1])


def test_looking_waits_for_no_batch(running: RunningDaemon, window: Received) -> None:
    batch = {"actions": [{"action": "click", "x": 5, "y": 5}, {"action": "wait", "seconds": 50}]}
    with _send(running, batch), running.client() as client:
        window.until("press")
        for path in ("/health", "/info", "/windows", "/screenshot", "/metrics", "/openapi.json"):
            assert client.get(path).status_code == 200, path
        assert _metric(running, "deskhand_batches_waiting") == 1


def test_more_batches_than_may_wait_are_refused(running: RunningDaemon) -> None:
    held = []
    until(lambda: _metric(running, "deskhand_batches_waiting") == 0)  # nothing is left of another test
    try:
        for _ in range(32):
            held.append(_send(running, {"actions": [{"action": "wait", "seconds": 50}]}))
        until(lambda: _metric(running, "deskhand_batches_waiting") == 32)
        answer = running.act({"action": "wait", "seconds": 0})
        assert (answer.status_code, answer.json()["kind"], answer.json()["sent"]) == (503, "busy", "none")
    finally:
        for sock in held:
            sock.close()
    until(lambda: _metric(running, "deskhand_batches_waiting") == 0)
    assert running.act({"action": "wait", "seconds": 0}).status_code == 200


def test_sessions_have_pictures_and_holds_of_their_own(
    running: RunningDaemon, server: XServer, window: Received
) -> None:
    mine, yours = {"Deskhand-Session": "mine"}, {"Deskhand-Session": "yours"}
    first = running.act({"action": "screenshot"}, headers=mine).json()["picture"]["sequence"]
    running.act({"action": "screenshot"}, headers=yours)
    with running.client(**yours) as client:
        assert client.get("/screenshot").status_code == 200
    guarded = {"expect": {"sequence": first}}
    assert running.act({"action": "wait", "seconds": 0}, headers=yours, **guarded).status_code == 409
    assert running.act({"action": "wait", "seconds": 0}, headers=mine, **guarded).status_code == 200

    running.act({"action": "key_down", "keys": "shift"}, headers=mine)
    assert len(pressed(server)) == 1
    running.act({"action": "wait", "seconds": 0}, headers=mine)
    assert len(pressed(server)) == 1
    running.act({"action": "click", "x": 8, "y": 8}, headers=yours)
    assert pressed(server) == []
    assert window.all("press")[-1]["state"] & 1 == 0, "another session's shift was held"
    told = running.act({"action": "wait", "seconds": 0}, headers=mine).json()
    assert told["released"] == ["key 50"]
    running.act({"action": "key_down", "keys": "ctrl"}, headers=mine)
    with running.client(**mine) as client:
        assert client.delete("/lease").status_code == 204
    assert pressed(server) == []


def test_the_screenshot_has_a_tag(running: RunningDaemon, window: Received) -> None:
    window.paint(0x336699)
    with running.client() as client:
        first = client.get("/screenshot")
        tag = first.headers["etag"]
        assert json.loads(first.headers["deskhand-picture"])["hash"] == tag.strip('"')
        same = client.get("/screenshot", headers={"If-None-Match": f'"other", {tag}'})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        assert client.get("/screenshot", headers={"If-None-Match": "*"}).status_code == 304
        window.paint(0xC03000)
        changed = client.get("/screenshot", headers={"If-None-Match": tag})
        assert changed.status_code == 200
        part = client.get("/screenshot", params={"format": "webp", "max_edge": 16, "region": "0,0,64,32"})
        assert part.headers["content-type"] == "image/webp"
        assert Image.open(io.BytesIO(part.content)).size == (16, 8)
        for wrong in (
            {"format": "gif"},
            {"max_edge": "big"},
            {"max_edge": "1_000"},
            {"max_edge": "\u0663\u0662"},
            {"region": "1,2,3"},
            {"region": "0,0,0,0"},
            {"size": "1"},
        ):
            answer = client.get("/screenshot", params=wrong)
            status = 409 if wrong == {"region": "0,0,0,0"} else 422
            assert (answer.status_code, answer.json()["sent"]) == (status, "none"), wrong


def test_leases(running: RunningDaemon, server: XServer, tmp_path: Path) -> None:
    with running.client(Accept="application/json") as client:
        taken = client.post("/lease", json={"holder": "first", "ttl": 60})
        token = {"Deskhand-Lease": taken.json()["lease"]}
        refused = running.act({"action": "wait", "seconds": 0})
        assert (refused.status_code, refused.json()["kind"], refused.json()["holder"]) == (409, "in_use", "first")
        wrong = running.act({"action": "wait", "seconds": 0}, headers={"Deskhand-Lease": "x" * 32})
        assert wrong.status_code == 409
        assert running.act({"action": "wait", "seconds": 0}, headers=token).status_code == 200
        second = client.post("/lease", json={"holder": "second", "wait": 0.1})
        assert (second.status_code, second.json()["holder"]) == (409, "first")
        assert client.patch("/lease", json={"ttl": 30}, headers=token).json() == {"holder": "first", "ttl": 30}
        assert client.patch("/lease", json={"ttl": 30}, headers={"Deskhand-Lease": "x"}).status_code == 404

        queued: list[Any] = []
        waiter = threading.Thread(
            target=lambda: queued.append(client.post("/lease", json={"holder": "third", "ttl": 0.2, "wait": 30}))
        )
        waiter.start()
        assert client.delete("/lease", headers=token).status_code == 204
        waiter.join()
        assert queued[0].status_code == 201
        until(lambda: running.act({"action": "wait", "seconds": 0}).status_code == 200)  # its time is over
        for wrong_body in ({}, {"holder": ""}, {"holder": "x", "ttl": 0}, {"holder": "x", "more": 1}, {"holder": 5}):
            assert client.post("/lease", json=wrong_body).status_code == 422, wrong_body


def test_a_lease_of_this_machine_counts(running: RunningDaemon, server: XServer) -> None:
    from deskhand.hand.lease import open_lease

    lease = open_lease(server.display, server.xauthority, "somebody here")
    lease.take(60)
    try:
        refused = running.act({"action": "wait", "seconds": 0})
        assert (refused.status_code, refused.json()["holder"]) == (409, "somebody here")
        with running.client() as client:
            assert client.post("/lease", json={"holder": "over there"}).status_code == 409
    finally:
        lease.release()
    assert running.act({"action": "wait", "seconds": 0}).status_code == 200
