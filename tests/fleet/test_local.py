"""A local pool of real desktops: isolation, what is refused, and what dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deskhand.desktop.processes import processes_of
from deskhand.errors import DisplayLost
from deskhand.fleet import LeaseLost, LocalPool, Options, fingerprint
from deskhand.fleet.making import HOST_MARK, DesktopMaker, Made, own_mark
from deskhand.hand.state import is_alive, process_start_time, read_desktops
from deskhand.testing.batches import quick, run, until

CLICK = quick({"action": "click", "x": 3, "y": 3})


def with_pool(work: Callable[[LocalPool], Awaitable[None]], size: int = 2, spares: int = 1) -> None:
    """Run ``work`` with a pool of openbox desktops, of which nothing must be left."""

    async def whole() -> None:
        pool = LocalPool(Options(size=size, spares=spares))
        async with pool:
            await work(pool)
        left = [facts for facts in read_desktops() if str(os.getpid()) in facts["env"].get(HOST_MARK, "")]
        assert left == []

    run(whole())


def names_of(desktop: str) -> set[str]:
    return {process.name for process in processes_of(desktop).values()}


def has_ended(pid: int, start_time: int) -> bool:
    return not is_alive(pid, start_time)


def facts_of(display: str) -> dict[str, Any]:
    return next(facts for facts in read_desktops() if facts["display"] == display)


@pytest.mark.slow
def test_each_has_a_home_a_bus_a_cookie_and_an_account_of_its_own() -> None:
    async def work(pool: LocalPool) -> None:
        async with pool.lease() as one, pool.lease() as two:
            assert one.current is not None
            assert two.current is not None
            a, b = facts_of(one.current.display), facts_of(two.current.display)
            for name in ("home", "dbus_address", "xauthority", "runtime_dir", "display"):
                assert a[name] != b[name], name
            assert Path(a["xauthority"]).read_bytes() != Path(b["xauthority"]).read_bytes()
            if os.geteuid() != 0:
                pytest.skip("only root gives each an account of its own")
            assert a["uid"] != b["uid"]
            for path in (b["xauthority"], b["home"], b["dbus_address"].removeprefix("unix:path=").split(",")[0]):
                looked = subprocess.run(
                    ["ls", "-l", path + "/" if path == b["home"] else path], user=a["uid"], group=a["gid"],
                    extra_groups=[], cwd="/", capture_output=True, text=True,
                )  # fmt: skip
                read = subprocess.run(
                    ["cat", path], user=a["uid"], group=a["gid"], extra_groups=[], cwd="/", capture_output=True
                )
                assert read.returncode != 0, path
                assert looked.returncode != 0 or path == b["xauthority"], path
            # Without the cookie nobody gets in, by the abstract socket either.
            tried = subprocess.run(
                ["xdpyinfo", "-display", b["display"]], env={**a["env"], "DISPLAY": b["display"]}, user=a["uid"],
                group=a["gid"], extra_groups=[], cwd="/", capture_output=True, text=True,
            )  # fmt: skip
            assert tried.returncode != 0
            assert "uthoriz" in tried.stderr

    with_pool(work, spares=0)


@pytest.mark.slow
def test_nothing_of_one_client_is_there_for_the_next() -> None:
    async def work(pool: LocalPool) -> None:
        async with pool.lease() as desktop:
            assert desktop.current is not None
            facts = facts_of(desktop.current.display)
            leave = (
                "echo secret > ~/left; echo secret > /tmp/left-by-$(id -u); mkdir /dev/shm/left-by-$(id -u);"
                "env -i setsid sleep 1000 & sleep 1000 &"
            )
            switch = os.geteuid() == 0
            subprocess.run(
                ["sh", "-c", leave],
                env=facts["env"],
                cwd=facts["home"],
                check=True,
                user=facts["uid"] if switch else None,
                group=facts["gid"] if switch else None,
                extra_groups=[] if switch else None,
            )
            await asyncio.to_thread(until, lambda: "sleep" in names_of(facts["id"]), "what it leaves behind runs")
            await desktop.reset()
            assert desktop.current.desktop != facts["id"]
            after = facts_of(desktop.current.display)
            assert not os.path.exists(after["home"] + "/left")
            await asyncio.to_thread(until, lambda: not os.path.exists(facts["directory"]), "the old one has ended")
            await asyncio.to_thread(until, lambda: not processes_of(facts["id"]), "its processes have too")
            if os.geteuid() == 0:
                left = [f"{directory}/left-by-{facts['uid']}" for directory in ("/tmp", "/dev/shm")]
                await asyncio.to_thread(until, lambda: not any(map(os.path.exists, left)), "its files have gone")

    with_pool(work, size=1)


@pytest.mark.slow
def test_a_batch_that_runs_when_its_lease_ends_is_stopped() -> None:
    async def work(pool: LocalPool) -> None:
        lease = await pool.acquire(ttl=0.5)
        desktop = pool.backend(lease)
        with pytest.raises(LeaseLost) as caught:
            await desktop.act(quick({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}))
        assert caught.value.sent in ("part", "unknown")
        with pytest.raises(LeaseLost) as refused:
            await desktop.act(CLICK)
        assert refused.value.sent == "none"
        async with pool.lease() as following:
            assert following.current is not None
            assert following.current.desktop != lease.desktop
            assert (await following.act(CLICK)).ok

    with_pool(work, size=1)


@pytest.mark.slow
def test_an_x_server_that_is_killed() -> None:
    async def work(pool: LocalPool) -> None:
        async with pool.lease(ttl=30) as desktop:
            assert desktop.current is not None
            facts = facts_of(desktop.current.display)
            os.kill(facts["processes"]["X server"][0], signal.SIGKILL)
            with contextlib.suppress(DisplayLost):  # one that is under way may not see it yet
                await desktop.act(CLICK)
            for _ in range(3):  # it stays like that: nothing connects to a later server of that number
                with pytest.raises(DisplayLost) as caught:
                    await desktop.act(CLICK)
            assert caught.value.sent == "none"
            await desktop.reset()
            assert (await desktop.act(CLICK)).ok
            # And one that is free when it dies is not given out.
            health = await pool.health()
            while not health["hosts"][0]["ready"]:
                await pool.host.change()
                health = await pool.health()
            (free,) = health["hosts"][0]["displays_ready"]
            dead = facts_of(free)
            os.kill(dead["processes"]["X server"][0], signal.SIGKILL)
            while (await pool.health())["hosts"][0]["died"] < 2:
                await pool.host.change()
            await desktop.reset()
            assert desktop.current.desktop != dead["id"]
            assert (await desktop.act(CLICK)).ok

    with_pool(work, size=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["supervisor", "session"])
def test_one_that_dies_before_anybody_has_it(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(pool: LocalPool) -> None:
        # Nobody is told of its end, as when it dies while it is being looked at: it is found when it is to be given.
        host = pool.host
        monkeypatch.setattr(host._stock, "_watch", lambda made: None)
        async with pool.lease() as first:
            assert (await first.act(CLICK)).ok
        async with asyncio.timeout(60):
            while not (await host.health())["ready"] or (await host.health())["coming"]:
                await host.change()
        for display in (await host.health())["displays_ready"]:
            pid, _ = facts_of(display)["processes"][part]
            os.kill(pid, signal.SIGKILL)
            died = partial(has_ended, *facts_of(display)["processes"]["supervisor"])
            await asyncio.to_thread(until, died, "it has died")
        async with pool.lease() as desktop:
            assert (await desktop.act(CLICK)).ok

    with_pool(work, size=1)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each an account of its own")
def test_a_process_that_hides_ends_also_when_its_supervisor_was_killed() -> None:
    async def work(pool: LocalPool) -> None:
        async with pool.lease() as desktop:
            assert desktop.current is not None
            facts = facts_of(desktop.current.display)
            hidden = subprocess.Popen(
                ["sh", "-c", "setsid sleep 1000 & echo $!"], env={"PATH": "/usr/bin:/bin"}, user=facts["uid"],
                group=facts["gid"], extra_groups=[], cwd="/", stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert hidden.stdout is not None
            pid = int(hidden.stdout.readline())
            hidden.wait()
            start_time = process_start_time(pid)
            assert start_time is not None
            assert pid not in processes_of(facts["id"])
            os.kill(facts["processes"]["supervisor"][0], signal.SIGKILL)
            await desktop.reset()
            await asyncio.to_thread(until, partial(has_ended, pid, start_time), "it has ended")

    with_pool(work, size=1)


@pytest.mark.slow
def test_an_application_opens_as_the_account_of_its_desktop() -> None:
    async def work(pool: LocalPool) -> None:
        async with pool.lease() as desktop:
            found = {one["id"] for one in await desktop.apps()}
            if "debian-xterm" not in found:
                pytest.skip("xterm is not installed (Debian: xterm)")
            outcome = await desktop.act({"actions": [{"action": "launch", "app": "debian-xterm"}]})
            assert outcome.ok, outcome.error
            (window,) = await desktop.windows()
            assert desktop.current is not None
            assert os.stat(f"/proc/{window['pid']}").st_uid == facts_of(desktop.current.display)["uid"]
            await desktop.reset()
            assert await desktop.windows() == []

    with_pool(work, size=1)


#: A host in a process of its own: leases one desktop and tells of all.
_HOST = """
import asyncio, json, os
from deskhand.fleet import LocalPool, Options
async def main():
    async with LocalPool(Options(size=2, spares=0)) as pool:
        await pool.acquire(600)
        print(json.dumps(await pool.health()), flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_host_that_is_killed_leaves_nothing(number: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", _HOST], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        (host,) = json.loads(process.stdout.readline())["hosts"]
        assert host["leased"] == 1
        mine = [facts for facts in read_desktops() if f":{process.pid}:" in facts["env"].get(HOST_MARK, "")]
        assert len(mine) == 2
    finally:
        process.send_signal(number)
        process.wait()
    until(lambda: not any(processes_of(facts["id"]) for facts in mine), "all have ended")
    until(lambda: not any(os.path.exists(facts["state_file"]) for facts in mine), "nothing is left")
    until(lambda: not any(is_alive(*facts["processes"]["supervisor"]) for facts in mine), "their supervisors too")


@pytest.mark.slow
def test_the_fingerprint_tells_what_differs() -> None:
    maker = DesktopMaker("openbox", (1280, 800), 60, 4, own_mark("test"))
    made: list[Made] = []
    try:
        made.append(maker.make())
        template = fingerprint.take_template(made[0])
        assert template["size"] == [1280, 800]
        assert template["windows"] == []
        assert " fonts, " in template["fonts"]
        assert template["applications"]
        assert all(version for version in template["applications"].values())
        assert fingerprint.differences(made[0], template) == []
        elsewhere = replace(made[0], env={**made[0].env, "LANG": "de_DE.UTF-8"})
        (locale,) = fingerprint.differences(elsewhere, template)
        assert "locale: LANG is 'de_DE.UTF-8', not 'C.UTF-8'" in locale or "locale: LANG" in locale
        other = DesktopMaker("openbox", (1024, 768), 60, 4, own_mark("test"))
        made.append(other.make())
        assert fingerprint.differences(made[1], template) == ["size: [1024, 768], not [1280, 800]"]
        with open_window(made[0]):
            (window,) = fingerprint.differences(made[0], template)
            assert "windows" in window
            assert "in the way" in window
        assert fingerprint.differences(made[0], template) == []
        fewer = {**template, "applications": {**template["applications"], "gone": "gone 1.0"}}
        assert fingerprint.differences(made[0], fewer) == ["applications: gone is None, not 'gone 1.0'"]
    finally:
        for one in made:
            maker.end(one)


@contextlib.contextmanager
def open_window(made: Made) -> Any:
    window = "import tkinter; w = tkinter.Tk(); w.title('in the way'); print(flush=True); w.mainloop()"
    process = subprocess.Popen(["/usr/bin/python3", "-c", window], env=made.env, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        until(lambda: any("in the way" in str(one) for one in fingerprint.take(made)["windows"]), "it is there")
        yield
    finally:
        process.terminate()
        process.wait()
