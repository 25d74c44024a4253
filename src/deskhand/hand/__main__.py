"""The one-file form: ``python3 deskhand-hand.pyz [OPTIONS]``, JSON in, JSON out.

Reads one JSON request from standard input and writes one JSON answer to standard output; the picture is in it as
base64, or follows as raw bytes with ``--raw`` (then ``picture.bytes`` says how many). Exit status: 0 all done,
2 refused before anything was sent, 3 failed after that, 5 the display can not be reached or was lost, 1 anything else.
When nobody reads standard output any more the batch stops at its next action, and what it held is released.

    --display NAME      else DISPLAY
    --xauthority FILE   else XAUTHORITY
    --session NAME      keeps what key_down holds, for a minute, for the next call with that name
    --timeout SECONDS   of every wait for the X server (5)
    --raw               the picture follows the answer's line as bytes
    --stream            read requests, one a line, until standard input ends, and answer each with --raw
    --text              with --stream: the picture is in the answer as base64, as without --raw
    --silence SECONDS   with --stream: standard input that says nothing for so long has ended (an empty line says that
                        somebody is still there)
    --resident SOCKET   stay, and answer requests on that unix socket
    --ask SOCKET        hand standard input to the resident hand there
"""

from __future__ import annotations

import sys
from typing import Dict, List, Optional

_WITH_VALUE = ("display", "xauthority", "session", "timeout", "resident", "ask", "silence")
_FLAGS = ("raw", "stream", "text", "help", "clipboard-owner")
#: The exit status of a process that SIGINT, SIGTERM or SIGHUP ended, as shells have it for SIGINT.
INTERRUPTED = 130


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the one-file form; gives its exit status."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until there is something to release: no traceback where somebody thinks better of what they were typing.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        options = _parse(sys.argv[1:] if arguments is None else arguments)
    except ValueError as error:
        print(f"deskhand-hand: {error}", file=sys.stderr)
        return 2
    if "help" in options:
        print(__doc__)
        return 0
    if "clipboard-owner" in options:
        from .clipboard_owner import main as own_clipboard

        return own_clipboard(options.get("display"), options.get("xauthority"))
    if "ask" in options:
        from .resident import main_ask

        return main_ask(options["ask"])
    return _answer(options)


def _parse(arguments: List[str]) -> Dict[str, str]:
    options: Dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        key = name[2:] if name.startswith("--") else "help" if name == "-h" else ""
        if key in _FLAGS and not equals:
            options[key] = ""
        elif key in _WITH_VALUE:
            if not equals:
                if not rest:
                    raise ValueError(f"{name} needs a value")
                value = rest.pop(0)
            options[key] = value
        else:
            raise ValueError(f"unknown option {name!r}: see --help")
    for key in ("timeout", "silence"):
        try:
            if key in options and not 0.1 <= float(options[key]) <= 600:
                raise ValueError
        except ValueError:
            raise ValueError(f"--{key} must be a number of seconds from 0.1 to 600") from None
    return options


def _answer(options: Dict[str, str]) -> int:
    import json
    import signal

    from .answering import answer, error_reply
    from .caller import Caller, release
    from .errors import DeskhandError
    from .hand import Hand
    from .resident import ending_signals, read_request, read_standard_input, serve

    hand = Hand(
        options.get("display"), options.get("xauthority"), options.get("session"), float(options.get("timeout", 5.0))
    )
    if "resident" in options:
        try:
            return serve(options["resident"], hand)
        except DeskhandError as error:
            print(f"deskhand-hand: {error}", file=sys.stderr)
            return 1
    if "stream" in options:
        from .stream import serve as serve_stream

        silence = float(options["silence"]) if "silence" in options else None
        return serve_stream(hand, 0, 1, "text" in options, silence)
    ended: List[int] = []
    ends: List[int] = []
    caller = Caller(hand, None, 1 if sys.stdout is not None else None)

    def end(number: int, _frame: object) -> None:
        # No exception out of nowhere: whatever is under way meets the end of the connection, or of its client.
        ended.append(number)
        caller.leave()

    try:
        request = read_request(read_standard_input())
        ends = ending_signals()
        for number in ends:
            signal.signal(number, end)
        with caller.watched():
            reply = answer(hand, request, caller.waits)
    except DeskhandError as error:
        reply = error_reply(error)
    for number in ends:
        signal.signal(number, signal.SIG_IGN)  # what is left is short
    try:
        if ended:
            print("deskhand-hand: interrupted: what was held is released", file=sys.stderr)
            if not reply.answer.get("ok"):
                reply.answer.update(error="interrupted by a signal: look again before acting", kind="interrupted")
            hand.abandon()
        elif caller.gone:
            release(hand)
            hand.close(keep=False)
        else:
            hand.close()
    except DeskhandError:
        pass  # the display went away after the answer was complete
    for number in ends:
        signal.signal(number, signal.SIG_DFL)  # whoever is to read the answer may never do so
    if "raw" in options and reply.picture is not None:
        content = reply.picture.content
        body = {**reply.answer, "picture": {**reply.answer["picture"], "bytes": len(content)}}
        written = json.dumps(body).encode() + b"\n" + content
    else:
        written = json.dumps(reply.with_base64()).encode() + b"\n"
    if not _write(written):
        return 1
    return INTERRUPTED if ended else reply.status


def _write(data: bytes) -> bool:
    """Write the answer; false when nobody reads it."""
    import os

    if sys.stdout is None:
        return False
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except OSError as error:
        print(f"deskhand-hand: the answer could not be written: {error.strerror}", file=sys.stderr)
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
