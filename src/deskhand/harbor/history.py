"""At most so many pictures in a request to the model: the older ones are taken out of the history."""

from __future__ import annotations

from typing import Any

from deskhand.harbor.settings import BadSetting


def pictures_in(prompt: Any) -> int:
    """The pictures that a prompt carries itself."""
    turns = [prompt] if isinstance(prompt, dict) else prompt
    if not isinstance(turns, list):
        return 0
    contents = [turn.get("content") for turn in turns if isinstance(turn, dict)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return sum(isinstance(part, dict) and part.get("type") == "image_url" for part in parts)


def trim_for(agent: Any, chat: Any, keep: int, prompt: Any) -> None:
    """Before a request: leave as many pictures in ``chat`` as go with those of ``prompt``.

    A prompt without one (the reply did not parse) keeps the current screen, which is the history's newest.
    """
    agent._compactor._trim_old_screenshots(chat, max(0, keep - pictures_in(prompt)))


def trim_for_last_request(agent: Any, keep: int) -> None:
    """Before the request at the turn cap, which carries the newest picture itself where there is one."""
    if agent._chat is None or agent._compactor is None:
        return
    carried = bool(agent._enable_images and agent._latest_screenshot_path is not None)
    agent._compactor._trim_old_screenshots(agent._chat, max(0, keep - carried))


def check_history(keep: int | None, provider_name: str, append_only: bool) -> None:
    """Raises BadSetting where the history can not be changed, or is not this agent's to change."""
    if keep is None:
        return
    if append_only:
        raise BadSetting(
            f"keep_screenshots={keep} takes pictures out of earlier turns, and rollout details need a history that only"
            " grows (a linear token-in-token-out session): leave one of the two"
        )
    if provider_name != "litellm":
        raise BadSetting(
            f"keep_screenshots={keep} goes with the generic provider (litellm): {provider_name} keeps a history of its"
            " own, which Harbor does not trim"
        )
