"""A page that a browser is shown: how each begins, and the files that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

#: Content Security Policy Level 3: own files only, no script or style in the markup, nobody frames it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Of every answer that is a page or a part of one.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_KINDS = {"css": "text/css", "js": "text/javascript"}
_TAGS = {"css": '<link rel="stylesheet" href="{}">', "js": '<script src="{}" defer></script>'}
#: What ``{{head}}`` and ``{{name}}`` stand for in an ``index.html``.
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
{files}
</head>
<body>
<noscript>This page needs JavaScript to show the {shows}.</noscript>"""
_NAME = """<div class="name">
    <h1 id="name">{title}</h1>
    <span class="status" id="status" role="status"><span class="dot"></span><span id="status-text">Connecting</span></span>
  </div>"""  # noqa: E501


@dataclass(frozen=True, eq=False)
class WebPage:
    """One that shows how something is now.

    Args:
        path: The path's one word; the page's files are under that.
        shows: What it shows, in a word.
        package: Where its ``index.html`` is.
        files: Its style sheets and scripts in their order, each with the package that it is in.
        again: What somebody is told who is not let in: how to open it, in HTML.
    """

    path: str
    shows: str
    package: str
    files: Mapping[str, str]
    again: str

    @property
    def paths(self) -> list[str]:
        """The paths of its files."""
        return [f"/{self.path}/{name}" for name in self.files]

    def routes(self) -> list[Route]:
        """Those of its files."""
        return [Route(path, self.get_file) for path in self.paths]

    def markup(self) -> str:
        tags = [_TAGS[_ending(name)].format(f"{self.path}/{name}") for name in self.files]
        facts = {"title": self.shows.capitalize(), "shows": self.shows, "files": "\n".join(tags)}
        page = (files(self.package) / "index.html").read_text("utf-8")
        return page.replace("{{head}}", _HEAD.format(**facts)).replace("{{name}}", _NAME.format(**facts))

    async def get_file(self, request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        content = (files(self.files[name]) / name).read_text("utf-8")
        return Response(content, headers=HEADERS, media_type=_KINDS[_ending(name)])


def _ending(name: str) -> str:
    return name.rpartition(".")[2]
