"""Who gets in: tickets, cookies, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deskhand.computerd.auth import digest
from deskhand.computerd.live import tickets
from deskhand.computerd.live.tickets import Tickets
from deskhand.testing import XServer, xvfb
from tests.computerd.daemons import RunningDaemon, daemon
from tests.computerd.viewers import RawViewer, Refused, cookie, ticket

KEY = digest("a token that nobody knows")


def test_a_ticket_is_good_once() -> None:
    given = Tickets(KEY)
    one = given.new(control=True)
    assert given.is_good(one)
    viewer = given.spend(one)
    assert viewer is not None
    assert viewer.control
    assert not given.is_good(one)
    assert given.spend(one) is None
    assert given.spend("never given") is None
    assert given.spend("ünüsual \udcff") is None


def test_a_ticket_is_over_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [500.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    given = Tickets(KEY)
    one, two = given.new(False), given.new(False)
    now[0] += 59
    assert given.spend(one) is not None
    now[0] += 2
    assert given.spend(two) is None


def test_tickets_are_bounded() -> None:
    given = Tickets(KEY)
    all_of_them = [given.new(False) for _ in range(tickets._MOST + 1)]
    assert not given.is_good(all_of_them[0])
    assert given.is_good(all_of_them[1])
    assert given.is_good(all_of_them[-1])


def test_a_cookie_is_good_for_its_time_and_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_700_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    given = Tickets(KEY)
    viewer = given.spend(given.new(control=False))
    assert viewer is not None
    value = given.cookie(viewer)
    assert Tickets(KEY).viewer(value) == viewer  # after a restart with the same token
    assert Tickets(digest("another token, as long")).viewer(value) is None
    assert Tickets(KEY).cookie_name != Tickets(digest("another token, as long")).cookie_name
    now[0] += tickets.VIEWER_SECONDS - 1
    assert given.viewer(value) == viewer
    now[0] += 1
    assert given.viewer(value) is None


def test_a_cookie_can_not_be_changed() -> None:
    given = Tickets(KEY)
    viewer = given.spend(given.new(control=False))
    assert viewer is not None
    value = given.cookie(viewer)
    until, kind, nonce, signature = value.split(".")
    for forged in (
        f"{until}.control.{nonce}.{signature}",
        f"{int(until) + 1}.{kind}.{nonce}.{signature}",
        value[:-1],
        value + "0",
        value.upper(),
        "",
        ".",
        "...",
        "ünüsual.\udcff",
    ):
        assert given.viewer(forged) is None, forged


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[XServer, RunningDaemon]]:
    directory: Path = tmp_path_factory.mktemp("computerd")
    with xvfb(640, 480) as server, daemon(server, directory) as running:
        yield server, running


def test_tickets_are_for_who_has_the_token(served: tuple[XServer, RunningDaemon]) -> None:
    _, running = served
    for token in ("", "Bearer wrong", f"Basic {running.token}"):
        with running.client(Authorization=token) as client:
            assert client.post("/live/tickets").status_code == 401
    with running.client() as client:
        answer = client.post("/live/tickets")
        assert answer.status_code == 201
        assert answer.json()["url"] == f"/live?ticket={answer.json()['ticket']}"
        assert answer.json()["expires_in"] == 60
        assert client.post("/live/tickets", json={"control": "yes"}).status_code == 422
        assert client.post("/live/tickets", json={"unknown": 1}).status_code == 422


def test_a_ticket_becomes_a_cookie_and_leaves_the_address(served: tuple[XServer, RunningDaemon]) -> None:
    _, running = served
    one = ticket(running)
    with running.client(Authorization="") as client:
        answer = client.get("/live", params={"ticket": one})
        assert answer.status_code == 200
        attributes = [part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]]
        assert {"httponly", "samesite=strict", "path=/live"} < set(attributes)
        assert one not in answer.text
        assert one not in answer.headers["set-cookie"]
        assert 'content="0;url=live"' in answer.text
        again = client.get("/live", params={"ticket": one})
        assert again.status_code == 401
        assert "set-cookie" not in again.headers
    assert not any(one in line for line in running.lines)


def test_the_page_needs_the_cookie_and_lets_nothing_else_in(served: tuple[XServer, RunningDaemon]) -> None:
    _, running = served
    mine = cookie(running)
    with running.client(Authorization="") as client:
        assert client.get("/live").status_code == 401
        for path in ("/live/live.js", "/live/live.css", "/live/marks.js", "/live/session"):
            assert client.get(path).status_code == 401
        client.headers["Cookie"] = mine
        page = client.get("/live")
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        for path in ("/live/live.js", "/live/live.css", "/live/marks.js", "/live/session"):
            assert client.get(path).status_code == 200
        # The cookie is for the view alone.
        for method, path in (("GET", "/info"), ("GET", "/screenshot"), ("POST", "/act"), ("POST", "/live/tickets")):
            assert client.request(method, path).status_code == 401
        assert client.post("/live").status_code in (401, 405)
        assert client.get("/live", headers={"Host": "evil.example"}).status_code == 403
        assert client.get("/live", headers={"Origin": "https://evil.example"}).status_code == 403


def test_the_stream_needs_the_cookie_or_a_ticket_and_its_own_page(served: tuple[XServer, RunningDaemon]) -> None:
    _, running = served
    mine = cookie(running)
    with RawViewer(running, mine) as viewer:
        assert viewer.turn()["turn"] == 1
    one = ticket(running)
    with RawViewer(running, query=f"?ticket={one}") as viewer:
        assert viewer.turn()["turn"] == 1
    name, _, value = mine.partition("=")
    for refused in (
        {},
        {"query": f"?ticket={one}"},  # it was used
        {"query": "?ticket=wrong"},
        {"cookies": f"{name}=wrong"},
        {"cookies": f"other={value}"},
        {"cookies": mine, "origin": None},
        {"cookies": mine, "origin": "null"},
        {"cookies": mine, "origin": "https://evil.example"},
        {"cookies": mine, "origin": running.url.replace("127.0.0.1", "localhost")},
    ):
        with pytest.raises(Refused) as caught:
            RawViewer(running, **refused)
        assert caught.value.status == 403, refused
