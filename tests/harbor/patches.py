"""The environment's patch, applied in a test and taken back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from deskhand.harbor import patch, patching

_ABSENT = object()
#: With this set the patch does nothing: to see that the tests which need it fail then.
EMPTIED = "DESKHAND_TEST_WITH_EMPTIED_PATCH"


def state() -> list[Any]:
    """What the attributes are that the patch sets."""
    return [vars(owner).get(name, _ABSENT) for owner, name in patching.PATCHED]


@contextmanager
def applying() -> Iterator[Callable[..., None]]:
    """Gives a function that applies it with ``HARBOR_CUA_*`` of these values."""
    before = state()

    def apply(**variables: str) -> None:
        named = {f"HARBOR_CUA_{name}": value for name, value in {"DESKTOP": "existing", **variables}.items()}
        if not os.environ.get(EMPTIED):
            patch.apply_existing_desktop(named)

    try:
        yield apply
    finally:
        patch._applied = None
        for (owner, name), value in zip(patching.PATCHED, before, strict=True):
            if value is _ABSENT:
                if name in vars(owner):
                    delattr(owner, name)
            else:
                setattr(owner, name, value)
