"""A desktop as a Gymnasium environment: its checker, fresh desktops, what is observed, and what is lost."""

from __future__ import annotations

import gc
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

gymnasium = pytest.importorskip("gymnasium")

import numpy as np  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402

from deskhand.backends.base import Backend, Outcome  # noqa: E402
from deskhand.errors import SetupError  # noqa: E402
from deskhand.fleet import LocalPool, NoneFree, Options, fingerprint  # noqa: E402
from deskhand.fleet.gym import ActionSpace, DesktopEnv  # noqa: E402
from deskhand.fleet.making import HOST_MARK, Made  # noqa: E402
from deskhand.hand.envelope import parse_batch  # noqa: E402
from deskhand.hand.state import read_desktops  # noqa: E402
from deskhand.hand.x11 import Connection  # noqa: E402
from deskhand.testing import XServer  # noqa: E402
from tests.fleet.makers import Given  # noqa: E402
from tests.test_extras import BLOCK, python  # noqa: E402
from tests.xservers import put_pixels  # noqa: E402

SIZE = (1280, 800)
QUICK = {"mode": "none"}


def facts_of(display: str) -> dict[str, Any]:
    return next(facts for facts in read_desktops() if facts["display"] == display)


def paint(display: str, pixel: int) -> None:
    with Connection.open(display, facts_of(display)["xauthority"]) as conn:
        put_pixels(conn, conn.root, 100, 50, 20, 10, pixel)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    yield
    left = [facts for facts in read_desktops() if str(os.getpid()) in facts["env"].get(HOST_MARK, "")]
    assert left == []


@pytest.fixture
def env(openbox_display: XServer) -> Iterator[DesktopEnv]:
    """On a desktop that is there already, and the same after each reset: what is not about fresh ones is quick so."""

    def pool() -> LocalPool:
        return LocalPool(Options(size=1, spares=0), maker=Given(openbox_display))

    with DesktopEnv(pool, settle=QUICK, max_steps=5) as env:
        yield env


@pytest.mark.slow
def test_gymnasium_finds_nothing_wrong(nothing_left: None) -> None:
    env = gymnasium.make("deskhand/Desktop-v0", pool=Options(size=1, spares=1), render_mode="rgb_array")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped)
    finally:
        env.close()
        env.close()


@pytest.mark.slow
def test_each_reset_gives_a_fresh_desktop_like_the_template(nothing_left: None) -> None:
    pools: list[LocalPool] = []

    def pool() -> LocalPool:
        pools.append(LocalPool(Options(size=1, spares=1)))
        return pools[-1]

    with DesktopEnv(pool) as env:
        first, told = env.reset(seed=1)
        paint(told["display"], 0xCC8844)
        env.step({"action": "clipboard_set", "text": "of the first"})
        seen, *_ = env.step({"action": "screenshot"})
        assert (seen[50:60, 100:120] == (0xCC, 0x88, 0x44)).all()
        assert not (seen == first).all()
        second, again = env.reset(seed=1)
        assert again["desktop"] != told["desktop"]
        assert again["number"] > told["number"]
        assert (second == first).all()
        facts = facts_of(again["display"])
        made = Made(facts["id"], facts["display"], facts["xauthority"], SIZE, facts["env"], None)
        template = pools[0].host.template
        assert template is not None
        assert fingerprint.differences(made, template) == []
        *_, read = env.step({"action": "clipboard_get"})
        assert "of the first" not in str(read)
    assert len(pools) == 1


@pytest.mark.slow
def test_a_desktop_that_dies_truncates_the_episode(nothing_left: None) -> None:
    with DesktopEnv(Options(size=1, spares=1)) as env:
        picture, told = env.reset()
        pid, _ = facts_of(told["display"])["processes"]["X server"]
        os.kill(pid, signal.SIGKILL)
        ended = False
        while not ended:
            seen, reward, terminated, ended, lost = env.step({"action": "move", "x": 3, "y": 3})
        assert (lost["ok"], lost["lost"]) == (False, True)
        assert lost["error"]
        assert (reward, terminated) == (0.0, False)
        assert seen in env.observation_space
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step({"action": "move", "x": 3, "y": 3})
        fresh, again = env.reset()
        assert again["ok"]
        assert again["desktop"] != told["desktop"]
        assert (fresh == picture).all()


def test_what_is_observed(env: DesktopEnv, openbox_display: XServer) -> None:
    seen, told = env.reset()
    assert seen.shape == (800, 1280, 3)
    assert seen in env.observation_space
    assert (told["ok"], told["settle"]) == (True, "none")
    with Connection.open(openbox_display.display, openbox_display.xauthority) as conn:
        put_pixels(conn, conn.root, 7, 5, 3, 2, 0x112233)
    seen, reward, terminated, truncated, told = env.step(
        [{"action": "move", "x": 40, "y": 30}, {"action": "cursor_position"}]
    )
    assert (seen[5:7, 7:10] == (0x11, 0x22, 0x33)).all()
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (told["ok"], told["sent"], told["error"]) == (True, "all", None)
    assert [result["action"] for result in told["results"]] == ["move", "cursor_position"]
    assert told["results"][1]["point"] == [40, 30]
    kept = seen.copy()
    env.step({"action": "move", "x": 1, "y": 1})
    assert (seen == kept).all()
    assert env.render() is None


def test_what_is_refused_is_told(env: DesktopEnv) -> None:
    env.reset()
    wrong: list[Any] = [{"action": "click", "x": 1280, "y": 0}, {"action": "dance"}, [], "click"]
    wrong.append({"action": "key", "keys": "nokey"})
    for action in wrong:
        assert action not in env.action_space
        seen, _, terminated, truncated, told = env.step(action)
        assert seen in env.observation_space
        assert (told["ok"], told["sent"], told["results"]) == (False, "none", [])
        assert told["error"]
        assert not terminated
    assert truncated  # five steps


def test_a_smaller_picture_is_what_is_acted_in(openbox_display: XServer) -> None:
    def pool() -> LocalPool:
        return LocalPool(Options(size=1, spares=0), maker=Given(openbox_display))

    with DesktopEnv(pool, settle=QUICK, max_edge=640, render_mode="rgb_array") as env:
        seen, _ = env.reset()
        assert seen.shape == (400, 640, 3)
        seen, *_, told = env.step([{"action": "move", "x": 639, "y": 399}, {"action": "cursor_position"}])
        assert told["results"][0]["point"] == [1279, 799]
        assert (env.render() == seen).all()
        assert {"action": "move", "x": 640, "y": 0} not in env.action_space


class Reach:
    """Reach a place that is drawn from the seed."""

    def __init__(self) -> None:
        self.place = (0, 0)
        self.options: Mapping[str, Any] = {}

    async def begin(self, desktop: Backend, chance: np.random.Generator, options: Mapping[str, Any]) -> dict[str, Any]:
        self.place = (int(chance.integers(1280)), int(chance.integers(800)))
        self.options = options
        return {"place": self.place}

    async def judge(self, desktop: Backend, outcome: Outcome | None) -> tuple[float, bool]:
        there = outcome is not None and outcome.ok and outcome.results[-1].get("point") == list(self.place)
        return (1.0, True) if there else (0.0, False)


def test_a_task_is_seeded_and_judged(openbox_display: XServer) -> None:
    def pool() -> LocalPool:
        return LocalPool(Options(size=1, spares=0), maker=Given(openbox_display))

    with DesktopEnv(pool, settle=QUICK, task=Reach()) as env:
        _, first = env.reset(seed=4, options={"level": 2})
        _, same = env.reset(seed=4)
        _, other = env.reset(seed=5)
        assert first["place"] == same["place"] != other["place"]
        x, y = other["place"]
        assert env.step({"action": "dance"})[1:4] == (0.0, False, False)
        assert env.step({"action": "move", "x": x, "y": y})[1:4] == (1.0, True, False)


def test_what_can_not_begin_says_why(env: DesktopEnv) -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step({"action": "screenshot"})
    other = DesktopEnv(env._pool_given, screen=(1024, 768))
    with other, pytest.raises(SetupError, match=r"1280x800: make the environment with screen=\(1280, 800\)"):
        other.reset()
    with DesktopEnv("no-such-fleet") as nowhere, pytest.raises(SetupError, match="start one with: deskhand fleet up"):
        nowhere.reset()
    with pytest.raises(ValueError, match="rgb_array"):
        DesktopEnv(render_mode="human")


class Taken(LocalPool):
    """Somebody else has its only desktop."""

    async def __aenter__(self) -> Taken:
        await super().__aenter__()
        await self.acquire(ttl=60, holder="somebody else")
        return self


def test_none_free(openbox_display: XServer, caplog: pytest.LogCaptureFixture) -> None:
    def pool() -> LocalPool:
        return Taken(Options(size=1, spares=0), maker=Given(openbox_display))

    with DesktopEnv(pool, wait=0.05) as env, pytest.raises(NoneFree):
        env.reset()
    gc.collect()
    assert not caplog.records  # nothing of a task whose error nobody took


def test_interrupted_it_stops_what_it_does(env: DesktopEnv) -> None:
    env.reset()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        env.step([{"action": "mouse_down", "x": 9, "y": 9}, {"action": "wait", "seconds": 60}])
    *_, told = env.step({"action": "cursor_position"})
    assert told["results"][0]["point"] == [9, 9]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 3000), height=st.integers(1, 3000))
def test_what_is_sampled_is_what_the_hand_takes(seed: int, width: int, height: int) -> None:
    space, same = ActionSpace((width, height), seed=seed), ActionSpace((width, height))
    same.seed(seed)
    for _ in range(20):
        action = space.sample()
        assert action == same.sample()
        assert action in space
        parse_batch({"actions": [action], "space": {"picture": [width, height]}})


def test_a_mask_and_names() -> None:
    space = ActionSpace(SIZE, names=("click", "key"), seed=3)
    assert {space.sample()["action"] for _ in range(40)} == {"click", "key"}
    assert {space.sample(mask=np.array([0, 1], np.int8))["action"] for _ in range(20)} == {"key"}
    assert {space.sample(probability=np.array([1.0, 0.0]))["action"] for _ in range(20)} == {"click"}
    assert space == ActionSpace(SIZE, names=("click", "key"))
    assert space != ActionSpace(SIZE)
    assert [{"action": "launch", "app": "xterm"}, {"action": "click"}] in space
    assert {"action": "drag", "path": [[0, 0], [1280, 0]]} not in space
    with pytest.raises(ValueError, match="not dance"):
        ActionSpace(SIZE, names=("dance",))


def test_without_gymnasium_the_extra_is_named() -> None:
    code = BLOCK.format(missing=["gymnasium"])
    code += "try:\n    import deskhand.fleet.gym\nexcept ImportError as error:\n    print(error)"
    done = python(code)
    said = "The Gymnasium environment is not available. Install it with: pip install 'deskhand[gym]'\n"
    assert done.stdout == said, done.stderr
