"""The files of the console that ``console/build.py`` writes into this package: one page, scripts and styles."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

from stoker.http.request import RequestContext, Response
from stoker.model.errors import EntityNotFound

_MEDIA_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
#: Names contain a hash of the content.
_CACHED = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}


class Asset(NamedTuple):
    """A file by content coding, with the empty name for the file itself; the best one comes first."""

    media_type: str
    variants: dict[str, bytes]


async def show(request: RequestContext) -> Response:
    """Return a file in the best content coding that the client accepts. Raises EntityNotFound."""
    asset = load().get(request.path["asset_name"])
    if asset is None:
        raise EntityNotFound("The file is not part of this version of the console: reload the page")
    accepted = {part.partition(";")[0].strip() for part in request.raw.headers.get("accept-encoding", "").split(",")}
    coding = next((name for name in asset.variants if name in accepted), "")
    headers = {**_CACHED, "Content-Encoding": coding} if coding else _CACHED
    return Response(200, asset.variants[coding], headers, asset.media_type)


@cache
def load() -> dict[str, Asset]:
    """Return the files by name; nothing if the installation lacks the console."""
    folder = resources.files(__package__) / "built" / "assets"
    contents = {file.name: file.read_bytes() for file in folder.iterdir()} if folder.is_dir() else {}
    return {
        name: Asset(
            _MEDIA_TYPES[name.rpartition(".")[2]],
            {
                **{
                    coding: contents[name + end]
                    for coding, end in (("br", ".br"), ("gzip", ".gz"))
                    if name + end in contents
                },
                "": content,
            },
        )
        for name, content in contents.items()
        if name.rpartition(".")[2] in _MEDIA_TYPES
    }


@cache
def page(name: str = "index") -> str | None:
    """Return the page that starts the console, or another built page; None if the installation lacks it."""
    file = resources.files(__package__) / "built" / f"{name}.html"
    return file.read_text() if file.is_file() else None
