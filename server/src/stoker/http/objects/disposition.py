"""
Decides whether a browser displays an object or saves it.

Responses to signed URLs omit all metadata except public metadata, and are saved as a file by default. Active content is
always saved as a file, because objects have the same origin as the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import quote

from stoker.model.objects import Stored
from stoker.objects import metadata, tempurl

_PUBLIC = metadata.OBJECT + "public-"
#: Parts of media types with which a browser might run scripts or display misleading content.
_ACTIVE = re.compile("html|xml|svg|script|pdf|flash|css|xsl|multipart|message", re.IGNORECASE)


def for_signed_url(query: Mapping[str, str], stored: Stored, headers: Mapping[str, str]) -> dict[str, str]:
    """
    Return the headers for a request with a signed URL: without private metadata, with Content-Disposition and Expires.
    """
    left = {
        name: value
        for name, value in headers.items()
        if not name.startswith(metadata.OBJECT) or name.startswith(_PUBLIC)
    }
    own = left.pop("content-disposition", None)
    filename = query.get("filename", "")
    if "inline" in query:
        left["Content-Disposition"] = _disposition("inline", filename) if filename else "inline"
    elif filename:
        left["Content-Disposition"] = _disposition("attachment", filename)
    else:
        left["Content-Disposition"] = own or _attachment(stored)
    signed = tempurl.read(query)
    if signed is not None:
        left.pop("expires", None)
        left["Expires"] = format_datetime(datetime.fromtimestamp(signed.expires, UTC), usegmt=True)
    return left


def force_attachment(stored: Stored, headers: Mapping[str, str]) -> dict[str, str]:
    """
    Return ``headers``, with Content-Disposition changed to an attachment if the media type can contain active content.
    """
    if not _ACTIVE.search(stored.content_type):
        return dict(headers)
    others = {name: value for name, value in headers.items() if name.lower() != "content-disposition"}
    own = next((value for name, value in headers.items() if name.lower() == "content-disposition"), "")
    kind, _, rest = own.partition(";")
    if not rest.strip():
        disposition = own if kind.strip().lower() == "attachment" else _attachment(stored)
    else:
        disposition = f"attachment;{rest}"
    return {**others, "Content-Disposition": disposition}


def _attachment(stored: Stored) -> str:
    return _disposition("attachment", stored.name.rstrip("/").rpartition("/")[2])


def _disposition(kind: str, filename: str) -> str:
    """
    Return the header with the filename in quotes for old clients, and in UTF-8 for new ones.

    Both are percent-encoded, so that the filename cannot inject header syntax.
    """
    return f"{kind}; filename=\"{quote(filename, safe=' ')}\"; filename*=UTF-8''{quote(filename, safe='')}"
