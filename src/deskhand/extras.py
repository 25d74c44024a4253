"""Parts that need a package which not everybody has: imported late, and the missing extra is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(what: str, extra: str, *modules: str) -> Iterator[None]:
    """Import inside what ``what`` needs; ``modules`` are the packages that ``extra`` brings.

    Raises:
        ImportError: One of them is missing: one line that names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in modules:
            raise
        raise ImportError(
            f"{what} is not available. Install it with: pip install 'deskhand[{extra}]'", name=error.name
        ) from None
