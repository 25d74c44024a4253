"""Things broken on purpose, in real sandboxes: the right error, and nothing older shown in place of what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harbor.scripted import SOLUTION, Scripted
from tests.harbor.tasks import DESKTOP
from tests.harbor.trials import needs_sandbox
from tests.standins.server import serving

pytestmark = [pytest.mark.slow, needs_sandbox]
Make = Callable[..., Any]
OURS = "deskhand.harbor:ExistingDesktop"
CLICK = {"type": "click", "x": 400, "y": 300}
SHOT = "/logs/agent/screenshot_ep0.png"
DRIVERS = pytest.mark.parametrize("driver", ["hand", "tools"])
#: A display that asks for a cookie, which the session has in a file of its own.
COOKIE = """#!/bin/bash
mkdir -p /run/user/0
cookie=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
xauth -f /run/user/0/cookie add :1 . "$cookie" 2>/dev/null
Xvfb :1 -screen 0 @SIZE@x24 -noreset -nolisten tcp -auth /run/user/0/cookie &
until [ -S /tmp/.X11-unix/X1 ]; do sleep 0.05; done
export DISPLAY=:1 XAUTHORITY=/run/user/0/cookie
echo "exec xterm -geometry 100x30+40+40 -e 'cat > /root/typed.txt'" > /root/begin.sh
openbox --startup "bash /root/begin.sh" &
sleep infinity
"""
#: Nothing is painted for some seconds after the display answers.
LATE = """#!/bin/bash
Xvfb :1 -screen 0 @SIZE@x24 -noreset -nolisten tcp &
until [ -S /tmp/.X11-unix/X1 ]; do sleep 0.05; done
export DISPLAY=:1
sleep 3
xterm -geometry 100x30+40+40 -e 'cat > /root/typed.txt'
"""
BLANK = """#!/bin/bash
exec Xvfb :1 -screen 0 @SIZE@x24 -noreset -nolisten tcp
"""


def play(place: Path, agent: Make, broken: Callable[[Any, Any], Any], desktop: str = DESKTOP, **kwargs: Any) -> Any:
    """Start the agent's session on a real sandbox, and do ``broken(session, environment)``."""
    from tests.harbor.real import on_real, real_sandbox

    async def whole() -> Any:
        async with real_sandbox(place, desktop) as environment:
            made = agent(OURS, **kwargs)
            await made.setup(environment)
            return await broken(made._session, environment)

    return on_real(whole)


@DRIVERS
def test_the_x_server_is_killed(tmp_path: Path, agent: Make, driver: str) -> None:
    from deskhand.harbor import DisplayDied
    from tests.harbor.agents import action

    async def broken(session: Any, environment: Any) -> None:
        await session.execute(action(**CLICK))
        await session.fetch_screenshot(SHOT)
        await environment.exec("pkill Xvfb; while pgrep Xvfb; do sleep 0.05; done")
        with pytest.raises(DisplayDied):
            await session.execute(action(**CLICK))
        with pytest.raises(DisplayDied):
            await session.fetch_screenshot("/logs/agent/screenshot_ep1.png")
        assert not (environment.trial_paths.agent_dir / "screenshot_ep1.png").exists()
        assert await session.is_session_alive() is False

    play(tmp_path, agent, broken, driver=driver)


@DRIVERS
def test_the_sandbox_is_killed(tmp_path: Path, agent: Make, monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    from deskhand.harbor import SandboxLost, session
    from tests.harbor.agents import action

    monkeypatch.setattr(session, "_BETWEEN", 0.1)

    async def broken(session: Any, environment: Any) -> None:
        await session.execute(action(**CLICK))
        await environment.sandbox.stop()
        with pytest.raises(SandboxLost):
            await session.execute(action(**CLICK))
        with pytest.raises(SandboxLost):
            await session.fetch_screenshot(SHOT)
        if driver == "tools":
            with pytest.raises(SandboxLost):
                await session.is_session_alive()

    play(tmp_path, agent, broken, driver=driver)


@DRIVERS
def test_the_cookie_of_the_session_is_found(tmp_path: Path, agent: Make, driver: str) -> None:
    async def broken(session: Any, environment: Any) -> None:
        assert session.desktop.readiness.xauthority == "/run/user/0/cookie"
        await session.fetch_screenshot(SHOT)

    play(tmp_path, agent, broken, COOKIE, driver=driver)


@DRIVERS
def test_a_wrong_cookie_is_a_clear_error(tmp_path: Path, agent: Make, driver: str) -> None:
    from deskhand.harbor.errors import NotReady

    async def broken(session: Any, environment: Any) -> None:
        raise AssertionError("it must not start")

    with pytest.raises(NotReady, match="display :1 is not there after 3 s"):
        play(
            tmp_path, agent, broken, COOKIE, driver=driver, xauthority="/etc/hostname", runtime_readiness_timeout_sec=3
        )


@DRIVERS
def test_no_display_is_a_clear_error(tmp_path: Path, agent: Make, driver: str) -> None:
    from deskhand.harbor.errors import NotReady

    async def broken(session: Any, environment: Any) -> None:
        raise AssertionError("it must not start")

    with pytest.raises(NotReady, match="display :5 is not there after 2 s"):
        play(tmp_path, agent, broken, driver=driver, display=":5", runtime_readiness_timeout_sec=2)


@DRIVERS
def test_a_wrong_size_is_a_clear_error(tmp_path: Path, agent: Make, driver: str) -> None:
    from deskhand.harbor.errors import NotReady

    async def broken(session: Any, environment: Any) -> None:
        raise AssertionError("it must not start")

    with pytest.raises(NotReady, match="is 1024x768, and desktop_width and desktop_height say 1280x800"):
        play(tmp_path, agent, broken, driver=driver, desktop_width=1280, desktop_height=800)


@DRIVERS
def test_a_desktop_that_paints_late_is_waited_for(tmp_path: Path, agent: Make, driver: str) -> None:
    async def broken(session: Any, environment: Any) -> None:
        assert session.desktop.readiness.blank is False

    play(tmp_path, agent, broken, LATE, driver=driver)


@DRIVERS
def test_a_blank_desktop_is_said_to_be(
    tmp_path: Path, agent: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, driver: str
) -> None:
    from deskhand.harbor import session

    monkeypatch.setattr(session, "_UNPAINTED", 2.0)

    async def broken(session: Any, environment: Any) -> None:
        assert session.desktop.readiness.blank is True

    play(tmp_path, agent, broken, BLANK, driver=driver)
    assert "all of one colour" in caplog.text


def test_slow_execs_a_bad_reply_and_the_turn_cap(tmp_path: Path, agent: Make) -> None:
    """200 ms for each command, a reply that is no JSON, and a run that ends at its last turn."""
    from harbor.models.agent.context import AgentContext

    from tests.harbor.real import Counted, on_real, real_sandbox

    replies = [SOLUTION[0], "no JSON at all", *SOLUTION[1:4]]

    async def whole(url: str) -> Any:
        async with real_sandbox(tmp_path) as environment:
            made = agent(OURS, api_base=url, max_turns=5, keep_screenshots=2)
            counted = Counted(environment, 0.2)
            await made.setup(environment)
            begun = len(counted.commands)
            context = AgentContext()
            await made.run("Do it.", environment, context)
            typed = await environment.exec("cat /root/typed.txt")
            return context, counted.commands[begun:], typed.stdout

    with serving(Scripted(replies)) as server:
        context, commands, typed = on_real(lambda: whole(server.url))
    assert typed == "desk hand\n"
    assert context.metadata["early_termination_reason"] == "max_turns_reached"
    hand = [command for command in commands if "base64 -d |" in command and "python3" in command]
    assert len(hand) == 5, "the first picture, and one for each of four actions"


@DRIVERS
def test_unicode_and_long_text_are_exact(tmp_path: Path, agent: Make, driver: str) -> None:
    from tests.harbor.agents import action

    text = "plain ascii text, 0123456789" if driver == "tools" else "y" * 3000

    async def broken(session: Any, environment: Any) -> str:
        await session.execute(action(**CLICK))
        for start in range(0, len(text), 1000):
            await session.execute(action(type="type", text=text[start : start + 1000] + "\n"))
        await session.execute(action(type="keypress", keys=["ctrl", "d"]))
        # What has read it all ends at the end of its input, and the window with it.
        waited = await environment.exec("timeout 20 sh -c 'while pgrep -x cat >/dev/null; do sleep 0.05; done'")
        assert waited.return_code == 0
        return str((await environment.exec("cat /root/typed.txt")).stdout)

    assert play(tmp_path, agent, broken, driver=driver).replace("\n", "") == text
