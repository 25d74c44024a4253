"""What Harbor's generic prompt says of a browser, of zooming and of coordinates, made true."""

from __future__ import annotations

import re
from collections.abc import Callable

from deskhand.harbor.settings import NORMALIZED, BadSetting, Settings

Edit = tuple[str, str, str]
"""What it is about, a pattern that must match exactly once, and what stands there instead."""

_NAVIGATE: tuple[Edit, ...] = (
    ("navigate in the list of actions", r'(?m)^( *"type": "<one of: [^\n]*?)\bnavigate, ', r"\1"),
    ("the field url", r'(?m)^ *"url": <[^\n]*>,\n', ""),
    ("the rule for navigate", r'(?ms)^- For "navigate":.*?(?=^- |\Z)', ""),
)
_ZOOM: tuple[Edit, ...] = (
    ("zoom in the list of actions", r'(?m)^( *"type": "<one of: [^\n]*?)\bzoom, ', r"\1"),
    # What follows it on its line is the place of the bash action's fields.
    ("the field zoom_region", r'\n *"zoom_region": <[^\n>]*>,', ""),
    ("the rule for zoom", r'(?ms)^- For "zoom":.*?(?=^- |\Z)', ""),
)
_GRID: tuple[Edit, ...] = (
    (
        "the rule for coordinates",
        r"\bMUST be in raw desktop pixels \(no normalization\)",
        "MUST be on a grid from 0 to 999 on both axes:\n(0, 0) is the top left corner of the screen, (999, 999) the"
        " bottom right",
    ),
    ("the rule for positions", r"\bprovide raw desktop pixel\s+coordinates in\b", "provide 0-999 grid coordinates in"),
)
_GRID_ZOOM: tuple[Edit, ...] = (
    ("the unit of the field zoom_region", r'("zoom_region": <\[x0, y0, x1, y1\]) in desktop pixels', r"\1 on the grid"),
    (
        "the unit in the rule for zoom",
        r'(- For "zoom": provide "zoom_region" as \[x0, y0, x1, y1\]) in desktop pixels',
        r"\1 on the grid",
    ),
)


def edit_prompt(settings: Settings, zooms: bool) -> Callable[[str], str]:
    """How to change the template for these settings.

    The function raises ``BadSetting`` when a line that it changes is not there exactly once: another version of Harbor,
    or somebody else's patch, has changed it, and the model would be offered what it can not do.
    """
    edits = [*_NAVIGATE, *(() if zooms else _ZOOM)]
    if settings.coordinate_space == NORMALIZED:
        edits += [*_GRID, *(_GRID_ZOOM if zooms else ())]

    def edit(template: str) -> str:
        for name, pattern, instead in edits:
            template, found = re.subn(pattern, instead, template)
            if found != 1:
                raise BadSetting(
                    f"the prompt of computer-1 has {name} {found} times instead of once: this version of Harbor, or"
                    " another patch of it, is not one that deskhand.harbor knows"
                )
        return template

    return edit
