"""Harbor's model providers, fitted to an existing desktop."""

from __future__ import annotations

from typing import Any

from harbor.agents.computer_1.providers.base import ModelStep
from harbor.agents.computer_1.providers.generic import GenericJsonProvider
from harbor.agents.computer_1.runtime import ComputerAction, CoordinateSpace

from deskhand.harbor.native import offer_what_there_is
from deskhand.harbor.prompt import edit_prompt
from deskhand.harbor.settings import NORMALIZED, BadSetting, Settings

#: Providers whose positions are pixels of the picture that was sent, and are left as they are by them.
_IN_PICTURE_PIXELS = ("litellm", "openai")
#: Whose positions are on a grid, whatever the picture's size.
_ON_A_GRID = ("gemini",)


def check_provider(settings: Settings, provider_name: str) -> None:
    """Raises BadSetting for settings that can not be had with that provider."""
    size, space = settings.screenshot_size, settings.coordinate_space
    if space is not None and provider_name != "litellm":
        raise BadSetting(
            f"coordinate_space={space!r} goes with the generic provider (litellm): {provider_name} has its own"
        )
    if size is not None and provider_name not in (*_IN_PICTURE_PIXELS, *_ON_A_GRID):
        tinker = provider_name == "tinker"
        why = "which tells its model the screen's pixels" if tinker else "which scales positions by itself"
        raise BadSetting(
            f"screenshot_size={size[0]}x{size[1]} does not go with the provider {provider_name}, {why}: leave it out,"
            " or use provider=litellm"
        )


def fit_generic(provider: Any, settings: Settings, zooms: bool) -> None:
    """The generic provider: PNG, a prompt that is true, and positions on a grid where that is set."""
    provider.screenshot_format = "png"
    provider._prompt_template = edit_prompt(settings, zooms)(provider._prompt_template)
    if settings.screenshot_size is not None:
        # What the prompt says of the display's size is that of the pictures: the model's pixels are theirs.
        provider.desktop_width, provider.desktop_height = settings.screenshot_size
    if settings.coordinate_space == NORMALIZED:
        parse = provider.parse

        def parse_on_grid(response: Any) -> ModelStep:
            step: ModelStep = parse(response)
            if isinstance(step.action, ComputerAction):
                step.action.source = CoordinateSpace.NORMALIZED_0_999.value
            return step

        provider.parse = parse_on_grid


def fit_native(provider: Any, zooms: bool) -> None:
    """Any other provider: PNG, and only what there is is offered."""
    provider.screenshot_format = "png"
    offer_what_there_is(provider, zooms)


def is_generic(provider: Any) -> bool:
    return isinstance(provider, GenericJsonProvider)
