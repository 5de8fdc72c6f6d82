"""What somebody with a signed URL is shown: no metadata but what is public, and a file to save."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import quote

from stoker.model.objects import Stored
from stoker.objects import metadata, tempurl

_PUBLIC = metadata.OBJECT + "public-"


def behind_signature(query: Mapping[str, str], stored: Stored, shown: Mapping[str, str]) -> dict[str, str]:
    left = {
        name: value for name, value in shown.items() if not name.startswith(metadata.OBJECT) or name.startswith(_PUBLIC)
    }
    own = left.pop("content-disposition", None)
    filename = query.get("filename", "")
    if "inline" in query:
        left["Content-Disposition"] = _disposition("inline", filename) if filename else "inline"
    elif filename:
        left["Content-Disposition"] = _disposition("attachment", filename)
    else:
        bare = stored.name.rstrip("/").rpartition("/")[2]
        left["Content-Disposition"] = own or _disposition("attachment", bare)
    signed = tempurl.read(query)
    if signed is not None:
        left.pop("expires", None)
        left["Expires"] = format_datetime(datetime.fromtimestamp(signed.expires, UTC), usegmt=True)
    return left


def _disposition(kind: str, filename: str) -> str:
    """For old readers in quotes, for new ones as UTF-8; percent-encoded, so that nothing breaks out of either."""
    return f"{kind}; filename=\"{quote(filename, safe=' ')}\"; filename*=UTF-8''{quote(filename, safe='')}"
