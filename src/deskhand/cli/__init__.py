"""The command line: one file per command.

Standard output is data only; with ``--json`` it is JSON. Errors are one line on standard error. Exit status: 0 done,
1 error, 2 usage or refused before anything was sent, 3 failed after that, 5 display not reachable or lost.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The ``deskhand`` command."""
    from deskhand.cli.app import app
    from deskhand.cli.output import fail
    from deskhand.errors import DeskhandError
    from deskhand.hand.answering import status_of
    from deskhand.hand.applications import ApplicationError

    try:
        app()
    except (DeskhandError, ApplicationError) as error:
        fail(str(error), status_of(error))
    except KeyboardInterrupt:
        fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        # A fault of ours: one line for the person, the traceback for who asks for it.
        if os.environ.get("DESKHAND_TRACEBACK"):
            raise
        fail(f"unexpected {type(error).__name__}: {error} (set DESKHAND_TRACEBACK=1 to see where)", 1)
