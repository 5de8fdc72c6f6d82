"""OS::Heat::MultipartMime: several configs in one MIME message for cloud-init."""

from __future__ import annotations

import email
import re
from collections.abc import Mapping
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.config import UNGROUPED
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker.store import configs, rows
from stoker.types.software_config import ConfigType

#: Valid MIME subtypes of ``text/``.
_SUBTYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}", re.ASCII)

_PART = Property(
    kind="map",
    schema={
        "config": Property(kind="string", required=True),
        "filename": Property(kind="string"),
        "type": Property(kind="string", default="text", allowed=("text", "multipart")),
        "subtype": Property(kind="string"),
    },
)


def _content(context: Context, text: str) -> str:
    """Return the content of the config whose id is ``text``; if there is none, return ``text``."""
    try:
        id = str(UUID(text))
    except ValueError:
        return text
    config = configs.find(context.tx, id)
    if config is None or config.project_id != context.project_id:
        return text
    content = "" if config.config is None else config.config
    return content if isinstance(content, str) else rows.dump(content)


def _append_parts(whole: MIMEMultipart, text: str, part: Properties) -> None:
    for inner in email.message_from_string(text).walk():
        if not inner.is_multipart():
            raw = inner.get_payload(decode=True)
            content = raw.decode(errors="replace") if isinstance(raw, bytes) else str(inner.get_payload())
            subtype = part["subtype"] or inner.get_content_subtype()
            whole.attach(_part(content, subtype, part["filename"] or inner.get_filename()))


def _part(text: str, subtype: str, filename: str | None) -> Message:
    part = MIMEText(text, subtype, "us-ascii" if text.isascii() else "utf-8")
    if filename:
        part.add_header("Content-Disposition", "attachment", filename=filename)
    return part


def _subtype(filename: str | None) -> str:
    stem = PurePosixPath(filename or "").stem
    return stem if _SUBTYPE.fullmatch(stem) else "plain"


class MultipartMime(ConfigType):
    name = "OS::Heat::MultipartMime"
    description = "Several configs put together as multipart MIME."
    properties = {
        "group": Property(
            kind="string", longest=255, default=UNGROUPED, description="Names the hook that runs the config."
        ),
        "parts": Property(kind="list", each=_PART, default=[], description="The parts, in their order."),
    }

    def content(self, context: Context, resource: Resource, properties: Properties) -> Mapping[str, Any]:
        # A random boundary would change the text each time, so the boundary derives from the resource's id.
        whole = MIMEMultipart(boundary=f"part-{resource.id}")
        for part in properties["parts"] or ():
            text = _content(context, part["config"])
            if part["type"] == "multipart":
                _append_parts(whole, text, part)
            else:
                whole.attach(_part(text, part["subtype"] or _subtype(part["filename"]), part["filename"]))
        return {"group": properties["group"], "config": whole.as_string()}

    def validate(self, properties: Properties) -> None:
        """Reject subtypes and filenames that could inject headers, for example by a line break."""
        parts = properties["parts"]
        for part in () if parts is UNKNOWN else parts or ():
            subtype, filename = (None, None) if part is UNKNOWN else (part["subtype"], part["filename"])
            if isinstance(subtype, str) and subtype and not _SUBTYPE.fullmatch(subtype):
                raise StackValidationFailed(f"parts: the subtype {clip(repr(subtype))} is none")
            if isinstance(filename, str) and not filename.isprintable():
                raise StackValidationFailed(f"parts: the filename {clip(repr(filename))} cannot be printed")
