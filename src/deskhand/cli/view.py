"""``deskhand view``: the address of a computerd's live view, for a browser."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Annotated, Any

import typer

from deskhand.cli.output import JsonOption, print_json
from deskhand.errors import BackendError, SetupError

_TIMEOUT = 10.0


def add_to(app: typer.Typer) -> None:
    app.command("view")(view)


def view(
    url: Annotated[
        str, typer.Option("--url", metavar="URL", envvar="DESKHAND_URL", help="Where computerd is.")
    ] = "http://127.0.0.1:8765",
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", envvar="DESKHAND_TOKEN_FILE", help="Holds computerd's token."),
    ] = None,
    see_only: Annotated[
        bool, typer.Option("--see-only", help="An address that lets nobody take over, whatever computerd allows.")
    ] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in this machine's browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the address of the live view of a desktop: good once, for a minute, for whoever opens it first."""
    if token_file is None:
        raise SetupError("the token is needed: give --token-file FILE, the one that deskhand serve has")
    given = ticket(url, token_file, see_only)
    address = given["url"]
    if as_json:
        print_json(given)
    else:
        typer.echo(address)
    if open_it:
        import webbrowser

        if not webbrowser.open(address):
            raise SetupError("no browser could be opened: copy the address into one")


def ticket(url: str, token_file: Path, see_only: bool = False) -> dict[str, Any]:
    """A ticket of the computerd at ``url``; its ``url`` is the whole address for a browser.

    Raises:
        SetupError: It can not be reached, or refuses; says why.
    """
    given = _ticket(url, _token(token_file), {"control": False} if see_only else {})
    return {**given, "url": urllib.parse.urljoin(url.rstrip("/") + "/", given["url"].lstrip("/"))}


def _token(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError as error:
        raise SetupError(f"the token file {path} can not be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SetupError(f"the token file {path} holds no token") from None


def _ticket(url: str, token: str, wish: dict[str, Any]) -> dict[str, Any]:
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise SetupError(f"a browser can not open {url}: start computerd with --listen HOST:PORT")
    request = urllib.request.Request(
        url.rstrip("/") + "/live/tickets",
        data=json.dumps(wish).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        method="POST",
    )
    host = urllib.parse.urlsplit(url).hostname or ""
    # A proxy of the environment is not asked for this machine's own addresses; it would be shown the token.
    local = host in ("localhost", "127.0.0.1", "::1")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({})) if local else urllib.request.build_opener()
    try:
        with opener.open(request, timeout=_TIMEOUT) as answer:
            found: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        raise SetupError(f"computerd at {url} refuses: {_detail(error)}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise SetupError(f"no computerd can be reached at {url} ({reason}): start it with deskhand serve") from None
    if not isinstance(found, dict) or not isinstance(found.get("url"), str):
        raise BackendError(f"what answers at {url} is no computerd: give its address with --url")
    return found


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"status {error.code}"
