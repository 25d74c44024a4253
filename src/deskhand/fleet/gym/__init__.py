"""A leased desktop as a Gymnasium environment.

- ``env``      ``DesktopEnv``: ``reset``, ``step``, ``close``
- ``actions``  ``ActionSpace``: our action dicts as a space
- ``thread``   the event loop that the pool lives on

Importing it registers ``deskhand/Desktop-v0``.
"""

from deskhand.extras import needs

with needs("The Gymnasium environment", "gym", "gymnasium", "numpy"):
    import gymnasium
    import numpy as _numpy  # noqa: F401

from .actions import ActionSpace
from .env import DesktopEnv, Task

__all__ = ["ActionSpace", "DesktopEnv", "Task"]

# What applications do takes its own time: the same actions may show another picture.
gymnasium.register("deskhand/Desktop-v0", entry_point="deskhand.fleet.gym:DesktopEnv", nondeterministic=True)
