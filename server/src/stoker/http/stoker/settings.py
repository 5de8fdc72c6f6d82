"""/v1/{project}/settings: the settings of the process that answers (Stoker's own)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, field

from stoker.addresses import hide_password
from stoker.http.contracts import Answer, Id, operation
from stoker.http.request import RequestContext
from stoker.model.secrets import REDACTED
from stoker.settings import describe_settings


class Setting(Answer):
    name: Id
    group: str
    value: Annotated[str, Meta(description="Empty: not set; secrets and passwords are redacted")]
    default: str
    source: Annotated[str | None, Meta(description="The flag, the variable or the file; null: the default")]
    help: str
    is_secret: bool = field(name="secret")


@operation(200, {"settings": list[Setting]})
def index(request: RequestContext) -> dict[str, Any]:
    """List the settings of the process that answers, with their values, defaults and sources."""
    settings = request.app.settings
    return {
        "settings": [
            Setting(
                name=described.name,
                group=described.group,
                value=_show(getattr(settings, described.name), is_secret=described.is_secret),
                default=_show(described.default),
                source=settings.sources.get(described.name),
                help=described.help,
                is_secret=described.is_secret,
            )
            for described in describe_settings()
            if described.name in settings.__dataclass_fields__  # without the file forms of secrets
        ]
    }


def _show(value: Any, *, is_secret: bool = False) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value == Path() else str(value)
    return REDACTED if is_secret and text else hide_password(text)
