"""All of them, for tests that every model must pass."""

from __future__ import annotations

from tests.standins import anthropic, chat, google, openai

STANDINS = [anthropic.StandIn, openai.StandIn, google.StandIn, chat.StandIn, chat.QwenStandIn, chat.UiTarsStandIn]
