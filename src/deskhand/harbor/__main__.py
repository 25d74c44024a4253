"""``python -m deskhand.harbor run ...``: Harbor's own command line, with the environment's patch applied first."""

from __future__ import annotations

import sys


def main() -> int:
    """Apply what ``HARBOR_CUA_*`` ask for, and hand over to Harbor's command line."""
    from deskhand.errors import SetupError
    from deskhand.harbor.patch import apply_existing_desktop

    try:
        apply_existing_desktop()
        from harbor.cli.main import app
    except (SetupError, ImportError) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "harbor"
        how = ": with Python 3.12 or newer, pip install 'deskhand[harbor]'" if missing else ""
        print(f"deskhand.harbor: {error}{how}", file=sys.stderr)
        return 2
    app()
    return 0


if __name__ == "__main__":
    sys.exit(main())
