"""The status page's server: who may see what, what is told, and that it lives and dies with its fleet."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import signal
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
httpx2 = pytest.importorskip("httpx2")

from deskhand.errors import SetupError  # noqa: E402
from deskhand.fleet import LeaseLost, LocalPool, NoneFree, Options  # noqa: E402
from deskhand.fleet.page.news import KEPT, News  # noqa: E402
from deskhand.fleet.page.status import PageSettings, StatusPage  # noqa: E402
from deskhand.testing.batches import quick, run, until  # noqa: E402
from tests.fleet.makers import Pretended  # noqa: E402

pytestmark = pytest.mark.usefixtures("not_looked_at")

SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+')


@asynccontextmanager
async def showing(name: str, size: int = 2, maker: Pretended | None = None) -> AsyncIterator[tuple[LocalPool, Any]]:
    pool = LocalPool(Options(size=size, spares=1), name=name, maker=maker or Pretended())
    async with pool, StatusPage(pool.detail, name, change=lambda: pool.host.change()) as page:
        await page.ticket()  # it is up
        yield pool, page


def client(page: StatusPage, **headers: str) -> Any:
    return httpx2.AsyncClient(base_url=page.url, headers=headers, timeout=20, trust_env=False)


def owner(page: StatusPage) -> Any:
    return client(page, Authorization=f"Bearer {Path(page.token_file).read_text().strip()}")


async def told(http: Any, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """What the stream tells, as soon as the condition holds."""
    async with asyncio.timeout(20), http.stream("GET", "/fleet/changes") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                if found.get("health") and condition(found["health"]):
                    return found
    raise AssertionError("the stream has ended")


async def metrics(http: Any, condition: Callable[[dict[str, float]], Any] = lambda found: True) -> dict[str, float]:
    """Every sample by name and labels, once the condition holds; each line has the form that Prometheus reads."""
    async with asyncio.timeout(20):
        while True:
            answer = await http.get("/metrics")
            if answer.status_code == 200:
                lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
                assert all(SAMPLE.fullmatch(line) for line in lines), lines
                found = {key: float(value) for key, _, value in (line.rpartition(" ") for line in lines)}
                assert len(found) == len(lines)
                if condition(found):
                    return found
            await asyncio.sleep(0.05)  # the page hears of it within a second


def test_who_may_see_it(name: str) -> None:
    async def work() -> None:
        async with showing(name) as (_, page):
            assert page.url.startswith("http://127.0.0.1:")
            assert stat.S_IMODE(os.stat(page.token_file).st_mode) == 0o600
            paths = ("/fleet/state", "/fleet/changes", "/fleet/session", "/fleet/fleet.js", "/metrics")
            async with client(page) as http:
                for path in paths:
                    assert (await http.get(path)).status_code == 401, path
                assert (await http.post("/fleet/tickets")).status_code == 401
                assert "not signed in" in (await http.get("/fleet")).text
                assert (await http.get("/fleet", params={"ticket": "guessed"})).status_code == 401
                assert set((await http.get("/health")).json()) == {"ok"}
                address = await page.ticket()
                opened = await http.get(address)
                assert opened.status_code == 200
                assert "HttpOnly" in opened.headers["set-cookie"]
                assert "SameSite=strict" in opened.headers["set-cookie"]
                assert "fleet/fleet.js" in (await http.get("/fleet")).text
                for path in paths[:1] + paths[2:4]:
                    assert (await http.get(path)).status_code == 200, path
                assert (await http.get("/metrics")).status_code == 401  # a cookie is the page's alone
                assert (await http.post("/fleet/tickets")).status_code == 401
            async with client(page) as other:
                assert (await other.get(address)).status_code == 401  # once
            async with owner(page) as http:
                assert (await http.get("/metrics", headers={"Host": "evil.example"})).status_code == 403
                assert (await http.get("/metrics", headers={"Origin": "http://evil.example"})).status_code == 403
                assert (await http.get("/nosuch")).status_code == 404
                assert (await http.post("/metrics")).status_code == 405

    run(work())


def test_names_that_are_allowed(name: str) -> None:
    async def work() -> None:
        settings = PageSettings(hosts=("desk.example",))
        pool = LocalPool(Options(), maker=Pretended())
        async with pool, StatusPage(pool.detail, name, settings) as page, owner(page) as http:
            assert (await http.get("/fleet/state", headers={"Host": "desk.example"})).status_code == 200

    run(work())


def test_an_address_that_is_taken(name: str) -> None:
    async def work(listen: str) -> None:
        pool = LocalPool(Options(), maker=Pretended())
        async with pool, StatusPage(pool.detail, name, PageSettings(listen)):
            pass

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        for listen in (f"127.0.0.1:{other.getsockname()[1]}", "nonsense", "127.0.0.1:99999"):
            with pytest.raises(SetupError, match=f"{listen} can not be listened on .*--page"):
                run(work(listen))
    for listen in ("8770", ":8770"):  # that would be every address of this machine
        with pytest.raises(
            SetupError, match=f"{listen} can not be listened on .it names no host: .*: give --page HOST:PORT"
        ):
            run(work(listen))


def test_what_is_told_as_it_happens(name: str) -> None:
    async def work() -> None:
        async with showing(name) as (pool, page), owner(page) as http:
            first = await told(http, lambda health: len(health["hosts"][0]["desktops"]) == 3)
            assert [one["state"] for one in first["health"]["hosts"][0]["desktops"]] == ["ready"] * 3
            assert len(first["samples"][0]) == 1 + len(first["sampled"])
            watching = asyncio.create_task(told(http, lambda health: health["leased"]))
            lease = await pool.acquire(ttl=60, holder="<b>the test</b>")
            health = (await watching)["health"]
            (leased,) = (one for one in health["hosts"][0]["desktops"] if one["state"] == "leased")
            assert (leased["holder"], leased["number"]) == ("<b>the test</b>", lease.number)
            assert leased["display"] == lease.display
            assert 55 < leased["until"] - first["now"] < 65
            assert leased["since"] <= leased["leased_since"]
            assert health["hosts"][0]["events"][-1]["what"] == "given"
            state = await http.get("/fleet/state")
            assert lease.token not in state.text
            assert lease.token.partition(".")[2] not in state.text
            await pool.release(lease)
            after = await told(http, lambda health: health["hosts"][0]["ended"] == 1)
            assert after["health"]["hosts"][0]["events"][-1]["what"] == "released"

    run(work())


@pytest.mark.slow
def test_metrics(name: str) -> None:
    fails = {4: "no X server"}

    async def work() -> None:
        async with showing(name, size=1, maker=Pretended(fail=lambda number: fails.get(number))) as (pool, page):
            begun = await pool.detail()
            assert begun["hosts"][0]["ready"] == 2
            lease = await pool.acquire(ttl=0.3, holder="dies")
            with pytest.raises(NoneFree):
                await pool.acquire(ttl=1, wait=0.0)
            while (await pool.health())["hosts"][0]["expired"] == 0:
                await pool.host.change()
            with pytest.raises(LeaseLost):
                await pool.backend(lease).act(quick({"action": "wait", "seconds": 0}))
            with pytest.raises(LeaseLost):
                await pool.renew(lease)
            second = await pool.acquire(ttl=60, wait=20)
            third = await pool.reset(second)

            def own(metric: str, **labels: str) -> str:
                inside = ",".join(f'{key}="{value}"' for key, value in {"host": name, **labels}.items())
                return f"deskhand_fleet_{metric}{{{inside}}}"

            async with owner(page) as http:
                back = await metrics(http, lambda found: found.get(own("desktops", state="ready")) == 1)
                assert back["deskhand_fleet_ok"] == 1
                assert back[own("desktops", state="leased")] == 1
                assert (back[own("leases_held")], back[own("leases_waiting")]) == (1, 0)
                assert (back[own("leases_total")], back[own("resets_total")]) == (3, 1)
                assert back[own("refusals_total", reason="none_free")] == 1
                assert back[own("refusals_total", reason="not_like_template")] == 0
                assert back[own("fencing_refusals_total")] == 2
                assert back[own("start_failures_total")] == 1
                assert back[own("recoveries_total", cause="lease_expired")] == 1
                assert back[own("recoveries_total", cause="start_failed")] == 1
                assert back[own("lease_seconds_count")] == 2
                assert back[own("lease_seconds_bucket", le="1")] <= back[own("lease_seconds_bucket", le="+Inf")] == 2
                assert back[own("lease_seconds_sum")] >= 0.3  # one of them ran out after that
                assert back[own("wait_seconds_count")] == 3
                assert back["process_open_fds"] > 3
                await pool.release(third)
                await metrics(http, lambda found: found[own("lease_seconds_count")] == 3)

    run(work())


def test_its_server_is_started_again_when_it_is_killed(name: str) -> None:
    async def work() -> None:
        async with showing(name) as (_, page):
            async with client(page) as http:
                await http.get(await page.ticket())
                cookies = http.cookies
            (pid,) = children("deskhand.fleet.page")
            os.kill(pid, signal.SIGKILL)
            until(lambda: pid not in children("deskhand.fleet.page"), "it has ended", 20)
            # The address was kept, and who was let in is let in still.
            async with client(page) as http:
                http.cookies = cookies
                assert (await http.get("/fleet/session")).status_code == 200
                await told(http, lambda health: health["size"] == 2)

    run(work())


def test_it_ends_with_its_fleet(name: str) -> None:
    async def work() -> None:
        async with showing(name) as (_, page), owner(page) as http:
            streaming = asyncio.create_task(told(http, lambda health: False))
            await told(http, lambda health: True)
        with pytest.raises((AssertionError, httpx2.HTTPError)):
            await streaming

    run(work())
    assert children("deskhand.fleet.page") == []


def test_what_it_needs_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "deskhand.fleet.page.status.find_spec", lambda module: None if module == "uvicorn" else found(module)
    )

    async def work() -> None:
        StatusPage(LocalPool(Options()).detail, name).open()

    with pytest.raises(SetupError, match=r"pip install 'deskhand\[computerd\]'"):
        run(work())


def test_news_keeps_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("deskhand.fleet.page.news.time.time", lambda: now)
    news = News()
    health = {"waiting": 3, "hosts": [{"leased": 1, "leases": 7}, {"leased": 2}]}
    for _ in range(2 * KEPT):
        now += 2.5
        news.tell(health)
    assert news.taken == KEPT
    now += 100
    news.tell(health)
    whole = news.since(0)
    assert len(whole["samples"]) == KEPT
    sample = dict(zip(("time", *whole["sampled"]), whole["samples"][-1], strict=True))
    assert (sample["time"], sample["leased"], sample["waiting"], sample["leases"]) == (now, 3, 3, 7)
    assert news.since(KEPT)["samples"] == whole["samples"][-1:]
    assert news.since(KEPT + 1)["samples"] == []


def children(module: str) -> list[int]:
    """This process's children that run ``module``."""
    found = []
    for pid in map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()):
        with suppress(OSError):
            if module in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                found.append(pid)
    return found
