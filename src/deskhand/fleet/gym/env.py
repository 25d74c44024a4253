"""A leased desktop as a Gymnasium environment: pictures are observed, our action dicts are done."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.errors import BatchRefused, DeskhandError, DisplayLost, NoDisplay, SetupError, Unsupported
from deskhand.fleet.errors import LeaseLost
from deskhand.fleet.gym.actions import SAMPLED, ActionSpace
from deskhand.fleet.gym.thread import LoopThread
from deskhand.fleet.local import LocalPool
from deskhand.fleet.options import Options
from deskhand.fleet.pool import PATIENCE, LeasedDesktop, Pool
from deskhand.fleet.socket import SocketPool
from deskhand.hand.picture import MAX_EDGE
from deskhand.hand.pixels import fit

Picture = NDArray[np.uint8]


class Task(Protocol):
    """What is to be done on the desktop. Both calls are on the environment's own event loop."""

    async def begin(self, desktop: Backend, chance: np.random.Generator, options: Mapping[str, Any]) -> dict[str, Any]:
        """Set the fresh desktop up; ``chance`` is seeded by ``reset(seed=...)``. Gives what ``info`` tells besides."""
        ...

    async def judge(self, desktop: Backend, outcome: Outcome | None) -> tuple[float, bool]:
        """The reward of a step, and whether the task has ended. ``outcome`` None: the batch was refused."""
        ...


class DesktopEnv(gymnasium.Env[Picture, Any]):
    """One desktop of a pool. ``reset`` gives a fresh one, like the pool's template; ``close`` gives it back.

    The observation is the picture after the screen has settled: height, width, 3 (RGB), ``uint8``. An action is one of
    our action dicts, or a list of them, in the pixels of that picture (see ``ActionSpace``). ``info`` has ``ok``,
    ``sent``, ``error``, ``results``, ``settled``, ``settle``, ``settle_ms``, ``moving`` of the batch, and ``desktop``,
    ``display`` and ``number`` of the lease. An action that is refused or fails is told there, and raises nothing. When
    the desktop is lost (its X server died, its lease is over) the episode is truncated, and ``info`` has ``lost``.

    Args:
        pool: The name of a fleet that ``deskhand fleet up`` started on this machine; or ``Options``: a pool of this
            environment's own; or a function that makes a pool, which is entered and closed by this environment.
        screen: Of the desktops, in pixels; one that has another size is refused.
        max_edge: Of the picture, in pixels; the screen is scaled down to it.
        task: What is to be done; None: every reward is 0.0, and no episode terminates.
        max_steps: Steps after which an episode is truncated.
        settle: How a step waits for the screen, as in a batch.
        names: What ``action_space`` samples.
        ttl, wait: Of the lease, in seconds; see ``Pool.acquire``.
        render_mode: ``rgb_array``, or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}

    def __init__(
        self,
        pool: str | Options | Callable[[], Pool] = "default",
        *,
        screen: tuple[int, int] | None = None,
        max_edge: int = MAX_EDGE,
        task: Task | None = None,
        max_steps: int | None = None,
        settle: Mapping[str, Any] | None = None,
        names: Sequence[str] = SAMPLED,
        ttl: float = 60.0,
        wait: float = PATIENCE,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is rgb_array or None, not {render_mode!r}")
        self.render_mode = render_mode
        self._screen = screen or (pool.screen if isinstance(pool, Options) else Options().screen)
        width, height = fit(*self._screen, min(max_edge, MAX_EDGE))
        self.observation_space = gymnasium.spaces.Box(0, 255, (height, width, 3), np.uint8)
        self.action_space = ActionSpace((width, height), names)
        self._pool_given = pool
        self._task = task
        self._max_steps = max_steps
        self._settle = dict(settle or {})
        self._terms = (ttl, wait)
        self._loop: LoopThread | None = None
        self._pool: Pool | None = None
        self._desktop: LeasedDesktop | None = None
        self._picture: Picture | None = None
        self._steps = 0
        self._lost = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        """Begin on a fresh desktop; ``seed`` seeds what the task draws, ``options`` are the task's.

        Raises:
            NoneFree: No desktop became free in time.
            SetupError: The pool can not be reached, makes no desktops, or they have another size.
            Unsupported: This pool can not make its desktops fresh.
        """
        super().reset(seed=seed)
        if self._loop is None:
            self._loop = LoopThread()
        told = self._loop.run(self._begin(options or {}))
        self._steps, self._lost = 0, False
        assert self._picture is not None
        return self._picture.copy(), told

    def step(self, action: Any) -> tuple[Picture, float, bool, bool, dict[str, Any]]:
        """Do it, let the screen settle, and look."""
        if self._loop is None or self._desktop is None or self._lost:
            raise gymnasium.error.ResetNeeded("there is no desktop to act on: call reset() first")
        reward, terminated, told = self._loop.run(self._act(action))
        self._steps += 1
        truncated = self._lost or (self._max_steps is not None and self._steps >= self._max_steps)
        assert self._picture is not None
        return self._picture.copy(), reward, terminated, truncated, told

    def render(self) -> Any:
        """The picture that was observed last; None without ``render_mode``."""
        if self.render_mode is None or self._picture is None:
            return None
        return self._picture.copy()

    def close(self) -> None:
        """Give the desktop back, and let go of the pool. Calling it again does nothing."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.run(self._let_go())
            finally:
                loop.close()

    # -- on the event loop --------------------------------------------------------------------------------------------

    async def _begin(self, options: Mapping[str, Any]) -> dict[str, Any]:
        desktop = await self._fresh()
        size = tuple((await desktop.info())["size"])
        if size != self._screen:
            raise SetupError(f"the desktop is {size[0]}x{size[1]}: make the environment with screen={size}")
        more = await self._task.begin(desktop, self.np_random, options) if self._task is not None else {}
        outcome = await desktop.act(self._batch([{"action": "screenshot"}]))
        self._look(outcome)
        return {**self._told(outcome), **more}

    async def _fresh(self) -> LeasedDesktop:
        """A desktop that nobody has used: in place of the one there is, or leased."""
        if self._pool is None:
            pool = _pool_of(self._pool_given)
            self._pool = await pool.__aenter__()
        desktop, self._desktop = self._desktop, None
        if desktop is not None:
            try:
                await desktop.reset()
                self._desktop = desktop
                return desktop
            except (LeaseLost, DisplayLost, NoDisplay):
                pass  # its host has ended, or the lease is over: lease another one
            finally:
                if self._desktop is None:
                    await desktop.aclose()
        ttl, wait = self._terms
        leased = self._pool.lease(ttl=ttl, wait=wait)
        self._desktop = await leased.__aenter__()
        return self._desktop

    async def _act(self, action: Any) -> tuple[float, bool, dict[str, Any]]:
        assert self._desktop is not None
        outcome: Outcome | None = None
        try:
            try:
                actions = list(action) if isinstance(action, (list, tuple)) else [action]
                outcome = await self._desktop.act(self._batch(actions))
            except (BatchRefused, Unsupported) as error:
                refused = error
                look = await self._desktop.act(self._batch([{"action": "screenshot"}], settle={"mode": "none"}))
                self._look(look)
                told = {**self._told(look), "ok": False, "sent": refused.sent, "error": str(refused), "results": []}
            else:
                self._look(outcome)
                told = self._told(outcome)
            if self._task is None:
                return 0.0, False, told
            reward, terminated = await self._task.judge(self._desktop, outcome)
            return float(reward), bool(terminated), told
        except (LeaseLost, DisplayLost, NoDisplay) as error:
            self._lost = True
            return 0.0, False, {"ok": False, "sent": error.sent, "error": str(error), "lost": True, **self._where()}

    def _batch(self, actions: list[Any], settle: Mapping[str, Any] | None = None) -> Envelope:
        height, width, _ = self.observation_space.shape or (0, 0, 0)
        whole = {"actions": actions, "space": {"picture": [width, height]}}
        return {
            **whole,
            "settle": dict(settle or self._settle),
            "picture": {"format": "png", "max_edge": max(width, height)},
        }

    def _look(self, outcome: Outcome) -> None:
        """Take the picture; one that could not be taken leaves the one before."""
        if outcome.picture is not None:
            height, width, _ = self.observation_space.shape or (0, 0, 0)
            image = Image.open(io.BytesIO(outcome.picture)).convert("RGB")
            if image.size != (width, height):  # what does not fit in the bytes of a picture is sent smaller; or a zoom
                image = image.resize((width, height))
            self._picture = np.asarray(image, np.uint8)
        elif self._picture is None:
            raise SetupError(f"no picture of the fresh desktop could be taken: {outcome.error}")

    def _told(self, outcome: Outcome) -> dict[str, Any]:
        told = {name: outcome.answer.get(name) for name in ("ok", "sent", "settled", "settle", "settle_ms", "moving")}
        return {**told, "results": outcome.results, "error": outcome.error, **self._where()}

    def _where(self) -> dict[str, Any]:
        lease = self._desktop.current if self._desktop is not None else None
        if lease is None:
            return {}
        return {"desktop": lease.desktop, "display": lease.display, "number": lease.number}

    async def _let_go(self) -> None:
        desktop, self._desktop = self._desktop, None
        pool, self._pool = self._pool, None
        if desktop is not None:
            with suppress(DeskhandError):  # its time ends it
                await desktop.aclose()
        if pool is not None:
            await pool.aclose()


def _pool_of(given: str | Options | Callable[[], Pool]) -> Pool:
    if isinstance(given, str):
        return SocketPool(given)
    return LocalPool(given) if isinstance(given, Options) else given()
