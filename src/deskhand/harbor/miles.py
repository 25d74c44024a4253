"""computer-1 on an existing desktop in Miles' rollouts: what its Harbor example needs of us.

::

    from deskhand.harbor import miles

    HARNESS_BINDINGS["computer-1"] = miles.HARNESS_BINDING   # beside the example's own
    env.update(miles.env_vars())                             # in launch_common.harbor_env_vars
    miles.prepare()                                          # before the agent function's try

Nothing here imports Harbor or Miles, but ``prepare``, which imports Harbor where the patch is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deskhand.harbor.settings import PREFIX, BadSetting, Settings


@dataclass(frozen=True)
class HarnessBinding:
    """How a harness is given its model's endpoint: Miles' own shape of it.

    Args:
        kwargs: From (session_url, api_key, sampling_params, model, max_seq_len) to the agent's keyword arguments.
        env: From (session_url, api_key) to the agent's environment.
        model_name: From the served model's name to the name that Harbor passes on.
    """

    kwargs: Callable[[str, str, dict[str, Any], str, int | None], dict[str, Any]]
    env: Callable[[str, str], dict[str, str]]
    model_name: Callable[[str], str] = lambda model: model


def env_vars(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every ``HARBOR_CUA_*`` variable that is set, for the rollout workers."""
    found = os.environ if environment is None else environment
    return {name: value for name, value in sorted(found.items()) if name.startswith(PREFIX) and value.strip()}


def prepare(linear_history: bool = False) -> bool:
    """Check the settings and apply the patch; call it where an error stops the run instead of scoring a zero.

    Args:
        linear_history: The session server takes a history that only grows (token in, token out).

    Raises:
        BadSetting: A setting can not be, or can not be together with another.
    """
    from deskhand.harbor.patch import apply_existing_desktop

    settings = Settings.from_environment(os.environ)
    _max_turns()
    if settings is not None:
        if os.environ.get("HARBOR_MAX_SEQ_LEN", "").strip():
            raise BadSetting("HARBOR_MAX_SEQ_LEN is set and computer-1 has no max_seq_len: unset it for this run")
        if linear_history and settings.keep_screenshots is not None:
            raise BadSetting(
                f"HARBOR_CUA_KEEP_SCREENSHOTS={settings.keep_screenshots} takes pictures out of earlier turns, and a"
                " linear token-in-token-out session needs a history that only grows: unset it, or leave the session"
            )
    return apply_existing_desktop()


def _kwargs(
    session_url: str, api_key: str, sampling_params: dict[str, Any], model: str, max_seq_len: int | None
) -> dict[str, Any]:
    """computer-1's keyword arguments. ``max_seq_len`` is none of them: it refuses what it does not know."""
    kwargs: dict[str, Any] = {
        "api_base": session_url,
        "llm_kwargs": {"api_key": api_key},
        "llm_call_kwargs": dict(sampling_params),
        # Harbor tells litellm of the model (``model_info``) and then asks it whether that model sees: it says no, from
        # the second trial of a process on.
        "enable_images": True,
    }
    if sampling_params.get("temperature") is not None:
        kwargs["temperature"] = float(sampling_params["temperature"])
    turns = _max_turns()
    if turns is not None:
        kwargs["max_turns"] = turns
    settings = Settings.from_environment(os.environ)
    if settings is not None and settings.desktop_size is not None:
        width, height = settings.desktop_size
        kwargs |= {"desktop_width": width, "desktop_height": height, "window_width": width, "window_height": height}
    return kwargs


def _max_turns() -> int | None:
    text = os.environ.get("HARBOR_AGENT_MAX_ITERATIONS", "").strip()
    if not text:
        return None
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise BadSetting(f"HARBOR_AGENT_MAX_ITERATIONS={text[:40]!r}: use a whole number of turns, 1 or more")
    return int(text)


def _env(session_url: str, api_key: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": api_key, "OPENAI_API_BASE": session_url}


HARNESS_BINDING = HarnessBinding(kwargs=_kwargs, env=_env)
