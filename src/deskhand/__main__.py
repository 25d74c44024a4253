"""``python -m deskhand``: the command line, for whoever has no ``deskhand`` command on the path."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
