"""A fleet on Ray whose desktops are apart: commands run on the machine of the desktop, and nowhere else."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from deskhand.fleet import Options  # noqa: E402
from deskhand.fleet.commands import CommandTimeout  # noqa: E402
from deskhand.fleet.named import Named  # noqa: E402
from deskhand.fleet.ray.up import end_fleet, start_fleet  # noqa: E402
from deskhand.testing.batches import run  # noqa: E402
from tests.fleet.apart import said, tried  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="it needs bubblewrap"),
]
NAME = "apart-on-ray"


def test_commands_over_ray(cluster: Any) -> None:
    async def work() -> None:
        await start_fleet(NAME, cluster.address, Options(size=1, spares=0, isolation="bwrap", home_size=32))
        try:
            pool = await Named.of(pool=NAME, ray=cluster.address).open()
            assert pool is await Named.of(pool=NAME, ray=cluster.address).open(), "who asks again gets the same"
            async with pool.lease() as one, pool.lease() as two:
                assert one.current is not None
                assert two.current is not None
                assert (await one.run("cat", b"\0in")).stdout == b"\0in"
                assert await said(one, "readlink", "/proc/self/ns/net") != os.readlink("/proc/self/ns/net")
                if two.current.display == ":1":  # which is everybody's own display too
                    one, two = two, one
                paths = [f"/tmp/.X11-unix/X{lease.current.display[1:]}" for lease in (one, two) if lease.current]
                assert await tried(one, *paths) == ["reached", "No such file or directory"]
                with pytest.raises(CommandTimeout):
                    await one.run("sleep 60", timeout=0.2)
                assert (await one.act({"actions": [{"action": "launch", "app": "XTerm"}]})).ok
                assert await asyncio.gather(one.run("id -u"), two.run("id -u"))
        finally:
            await end_fleet(NAME, cluster.address)

    run(work())
