"""What requests hold beside batches: queries, and small JSON objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from deskhand.computerd.problems import Problem
from deskhand.errors import BatchRefused
from deskhand.hand.envelope import PictureWish, parse_batch
from deskhand.hand.resident import read_request

#: Seconds for which a lease may be taken, and for which it may be queued for.
LONGEST_LEASE, LONGEST_WAIT = 24 * 3600.0, 3600.0


def wish_of(request: Request) -> PictureWish:
    """The picture that a query asks for, checked where every batch's is."""
    wanted: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in wanted or name not in ("format", "max_edge", "region", "cursor"):
            raise BatchRefused(f"a screenshot has format, max_edge and region, each once, and not {name[:60]!r}")
        try:
            if name == "cursor" and value not in ("true", "false"):
                raise ValueError("neither true nor false")
            wanted[name] = _QUERY[name](value)
        except ValueError:
            raise BatchRefused(f"{name} must not be {value[:60]!r}: see /openapi.json") from None
    wish = parse_batch({"actions": [{"action": "screenshot"}], "picture": wanted or True}).picture
    assert wish is not None
    return wish


def _whole(text: str) -> int:
    """A whole number as /openapi.json has them; ``int`` takes more than that."""
    if not re.fullmatch("-?[0-9]{1,9}", text):
        raise ValueError("no whole number")
    return int(text)


_QUERY: dict[str, Callable[[str], Any]] = {
    "format": str,
    "max_edge": _whole,
    "region": lambda text: [_whole(corner) for corner in text.split(",")],
    "cursor": lambda text: text == "true",
}

Check = Callable[[Any], Any]


async def fields_of(request: Request, **checks: Check) -> dict[str, Any]:
    """The fields of a small JSON object.

    Raises:
        Problem: One is wrong, or unknown.
    """
    try:
        given = read_request(await request.body())
    except BatchRefused as error:
        raise Problem("refused", str(error)) from None
    if not isinstance(given, dict):
        raise Problem("refused", f"the body is an object with {', '.join(checks)}")
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in checks:
            raise Problem("refused", f"there is no field {name[:60]!r}: use {', '.join(checks)}")
        try:
            found[name] = checks[name](value)
        except ValueError as error:
            raise Problem("refused", f"{name} {error}") from None
    return found


def seconds(low: float, high: float) -> Check:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise ValueError(f"must be from {low:g} to {high:g} seconds")
        return float(value)

    return check


def text(longest: int) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= longest:
            raise ValueError(f"must be text of 1 to {longest} characters")
        return value

    return check


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def count(value: Any) -> int | None:
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or (isinstance(value, float) and not value.is_integer())
        or not 0 <= value <= 1 << 53
    ):
        raise ValueError("must be a whole number, 0 or more, or null")
    return int(value)
