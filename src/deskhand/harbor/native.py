"""What Harbor's native providers offer their models of a browser and of zooming, made true.

Each changes its own provider object only, and nothing of the vendor's SDK or of Harbor for others. What is not offered
and asked for all the same is answered with an error by the session.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from deskhand.harbor.settings import BadSetting
from deskhand.harbor.translation import BROWSER

#: Functions that Gemini has of itself and that need a browser of Harbor's: of the model that Harbor 0.20 is for, and of
#: the newer ones.
GEMINI_2_BROWSER = ("open_web_browser", "search", "navigate", "go_back", "go_forward")
GEMINI_3_BROWSER = ("navigate", "go_back", "go_forward")
#: Where a provider's words offer to zoom: the constant of its module, and the words.
ZOOM_WORDS = {
    "GEMINI_COMPUTER_USE_HINT": (
        " When a task requires zooming or reading tiny text, call `zoom_region` around the area to crop the next"
        " screenshot."
    ),
    "_COMPUTER_USE_NOTE": (
        " Use zoom_region when a click target is too small to\nlocate confidently, and wait for its image before"
        " choosing coordinates."
    ),
}
TINKER_ZOOM_WORDS = " or request a zoom"


def offer_what_there_is(provider: Any, zooms: bool) -> None:
    """Take out of a native provider's offer what this desktop does not have.

    Raises:
        BadSetting: The provider's words are others than we know: this version of Harbor is another.
    """
    fits: dict[str, Callable[[Any, bool], None]] = {
        "AnthropicProvider": _fit_anthropic,  # Bedrock's is one of these
        "GeminiProvider": _fit_gemini,
        "TinkerProvider": _fit_tinker,
    }
    for kind in type(provider).__mro__:
        if kind.__name__ in fits:
            fits[kind.__name__](provider, zooms)


def _fit_anthropic(provider: Any, zooms: bool) -> None:
    if zooms:
        return
    messages = provider._client.beta.messages
    create = messages.create

    def create_without_zoom(**request: Any) -> Any:
        tools = [{name: value for name, value in tool.items() if name != "enable_zoom"} for tool in request["tools"]]
        return create(**{**request, "tools": tools})

    messages.create = create_without_zoom


def _fit_gemini(provider: Any, zooms: bool) -> None:
    if hasattr(provider, "_generate_config"):
        _fit_gemini_2(provider, zooms)
    else:
        _fit_gemini_3(provider, zooms)


def _fit_gemini_2(provider: Any, zooms: bool) -> None:
    """Its tools are the provider's own; its words are in the first content that it sends."""
    for tool in provider._generate_config.tools:
        if tool.computer_use is not None:
            tool.computer_use.excluded_predefined_functions = list(GEMINI_2_BROWSER)
        if tool.function_declarations and not zooms:
            tool.function_declarations = [one for one in tool.function_declarations if one.name != "zoom_region"]
    if zooms:
        return
    hint, without = _words(provider, "GEMINI_COMPUTER_USE_HINT")
    models = provider._client.models
    generate = models.generate_content

    def generate_content(**request: Any) -> Any:
        part = request["contents"][0].parts[0]
        part.text = part.text.replace(hint, without)
        return generate(**request)

    models.generate_content = generate_content


def _fit_gemini_3(provider: Any, zooms: bool) -> None:
    """Its tools are the module's, for every provider: they are changed in each request of this one."""
    note, without = ("", "") if zooms else _words(provider, "_COMPUTER_USE_NOTE")
    interactions = provider._client.aio.interactions
    create = interactions.create

    async def create_fitted(**request: Any) -> Any:
        tools = [_gemini_3_tool(tool) for tool in request["tools"] if zooms or tool.get("name") != "zoom_region"]
        sent = [
            {**item, "text": item["text"].replace(note, without)} if note and item.get("type") == "text" else item
            for item in request["input"]
        ]
        return await create(**{**request, "tools": tools, "input": sent})

    interactions.create = create_fitted


def _gemini_3_tool(tool: dict[str, Any]) -> dict[str, Any]:
    if tool["type"] != "computer_use":
        return tool
    return {**tool, "excluded_predefined_functions": list(GEMINI_3_BROWSER)}


def _fit_tinker(provider: Any, zooms: bool) -> None:
    """Its tools and words go through its renderer, which it makes when its model is first asked."""
    initialize = provider._initialize

    async def initialize_and_fit() -> None:
        await initialize()
        renderer = provider.renderer
        begin = renderer.create_conversation_prefix_with_tools

        def create_conversation_prefix_with_tools(tools: Any, system_prompt: str = "", **named: Any) -> Any:
            offered = [tool for tool in tools if tool["name"] not in BROWSER and (zooms or tool["name"] != "zoom")]
            words = system_prompt if zooms else system_prompt.replace(TINKER_ZOOM_WORDS, "")
            return begin(offered, system_prompt=words, **named)

        renderer.create_conversation_prefix_with_tools = create_conversation_prefix_with_tools

    provider._initialize = initialize_and_fit


def _words(provider: Any, constant: str) -> tuple[str, str]:
    """The words of the provider's module, and what is left of them without the offer to zoom."""
    words: str = getattr(sys.modules[type(provider).__module__], constant)
    if words.count(ZOOM_WORDS[constant]) != 1:
        raise BadSetting(
            f"what computer-1 tells Gemini of zooming ({constant}) is not what deskhand.harbor knows: use driver=hand,"
            " which zooms"
        )
    return words, words.replace(ZOOM_WORDS[constant], "")
