"""The status page itself, in Debian's Chromium: it shows the fleet, follows it, fits, and comes back by itself."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.async_api")
pytest.importorskip("uvicorn")

from deskhand.fleet import LocalPool, NoneFree, Options  # noqa: E402
from deskhand.fleet.page.status import PageSettings, StatusPage  # noqa: E402
from deskhand.fleet.page.token import token_file  # noqa: E402
from deskhand.testing.batches import run  # noqa: E402
from tests.fleet.makers import Pretended  # noqa: E402

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser")) if path), None)
pytestmark = [
    pytest.mark.usefixtures("not_looked_at"),
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
SECONDS = 30_000  # milliseconds


@asynccontextmanager
async def opened(status: StatusPage, width: int = 1440, scheme: str = "light") -> AsyncIterator[Any]:
    """The page in a browser. What it loads from elsewhere, or says is wrong, fails the test."""
    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    wrong: list[str] = []
    own = status.url
    async with playwright.async_playwright() as running:
        browser = await running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        context = await browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
        page = await context.new_page()
        page.set_default_timeout(SECONDS)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(own) else None)
        await page.goto(await status.ticket())
        await page.wait_for_selector(".status.live")
        yield page
        await browser.close()
    assert [one for one in wrong if one != "data:,"] == []


def test_it_shows_the_fleet_as_it_changes(name: str) -> None:
    async def work() -> None:
        pool = LocalPool(Options(size=2, spares=1), name=name, maker=Pretended())
        async with (
            pool,
            StatusPage(pool.detail, name, change=lambda: pool.host.change()) as status,
            opened(status) as page,
        ):
            expect = playwright.expect
            rows = page.locator("tbody tr")
            assert await page.inner_text("h1") == f"Fleet {name}"
            await expect(rows).to_have_count(3)
            await expect(page.locator("#leased")).to_have_text("0 of 2")
            lease = await pool.acquire(ttl=60, holder="<i>a trainer</i>")
            await expect(page.locator("tr.leased td.holder")).to_have_text("<i>a trainer</i>")
            await expect(page.locator("tr.leased td.number")).to_have_text(str(lease.number))
            await expect(page.locator("tr.leased td.display")).to_have_text(lease.display)
            await expect(page.locator("#leased")).to_have_text("1 of 2")
            await expect(page.locator("#outcomes li").first).to_contain_text("<i>a trainer</i>")
            assert await page.locator("i:not(.swatch)").count() == 0
            await expect(page.locator("#now path.leased")).to_have_count(1)
            assert lease.token not in await page.content()
            # Time goes on by itself.
            left = page.locator("tr.leased td.left")
            shown = await left.inner_text()
            await expect(left).not_to_have_text(shown)
            with suppress(NoneFree):
                async with asyncio.timeout(20):
                    await pool.acquire(ttl=60, holder="second")
                    await pool.acquire(ttl=60, wait=0.01, holder="impatient")
            await expect(page.locator("#outcomes li.refused")).to_contain_text("impatient waited 0.01 s")
            await page.click("#only")
            await expect(page.locator("#outcomes li")).to_have_count(1)
            await pool.release(lease)
            await expect(page.locator("#leased")).to_have_text("1 of 2")

    run(work())


def test_it_comes_back_and_says_when_it_may_not(name: str) -> None:
    async def work() -> None:
        pool = LocalPool(Options(size=1, spares=0), name=name, maker=Pretended())
        async with pool:
            first = StatusPage(pool.detail, name)
            first.open()
            where = PageSettings(first.url.removeprefix("http://"))
            try:
                async with opened(first) as page:
                    await first.aclose()
                    await page.wait_for_selector("text=Not connected")
                    assert await page.is_visible("#retry")
                    async with StatusPage(pool.detail, name, where):
                        await page.wait_for_selector(".status.live")
                        assert not await page.is_visible("#banner")
                    Path(token_file(name)).unlink()  # another token: whoever was let in is so no more
                    async with StatusPage(pool.detail, name, where):
                        await page.wait_for_selector("text=This view has ended")
            finally:
                await first.aclose()

    run(work())


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (820, "light"), (1440, "dark")])
def test_it_fits(name: str, width: int, scheme: str) -> None:
    async def work() -> None:
        pool = LocalPool(Options(size=4, spares=1), name=name, maker=Pretended())
        async with pool, StatusPage(pool.detail, name, change=lambda: pool.host.change()) as status:
            for number in range(3):
                await pool.acquire(ttl=60, holder=f"{number}-" + "n" * 150)
            async with opened(status, width, scheme) as page:
                await playwright.expect(page.locator("tr.leased")).to_have_count(3)
                assert await page.evaluate("document.documentElement.scrollWidth") <= width
                for number in range(3):
                    box = await page.locator("tr.leased").nth(number).bounding_box()
                    assert 0 <= box["x"] < width
                # By the keyboard alone.
                await page.focus("#only")
                await page.keyboard.press("Enter")
                assert await page.get_attribute("#only", "aria-pressed") == "true"

    run(work())
