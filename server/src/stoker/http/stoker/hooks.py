"""/v1/{project}/hooks: stored hooks, which agents fetch for the runs of a config (Stoker's own)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Annotated, Any
from uuid import uuid4

from msgspec import Meta, field

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Count, Flag, Id, LongText, Time, Unchecked, fill
from stoker.http.request import RequestContext
from stoker.http.stoker.artifact_requests import owner_of, require_owned, require_visible
from stoker.model.artifact import Artifact, ArtifactKind
from stoker.model.errors import Invalid, RequestLimitExceeded
from stoker.store import artifacts
from stoker.store.limits import check_limit
from stoker.store.tx import Tx

#: Largest hook in bytes. An agent keeps the hooks that it has fetched.
LONGEST = 1024 * 1024
#: Number of versions of hooks that one project may store.
_MOST = 1000

_NAME = "[A-Za-z0-9][A-Za-z0-9_-]{0,62}"


class HookName(Unchecked):
    schema = Annotated[str, Meta(pattern=f"^{_NAME}$", description="Usually the group whose configs the hook runs")]


class NewHook(Body):
    name: HookName
    content: Annotated[str, Meta(description="The executable file, in base64")]
    description: LongText = ""
    public: Annotated[Flag, Meta(description="Every project may use it; only for administrators of the site")] = False


class HookSummary(Answer):
    name: str
    version: Count
    sha256: Id
    size: Count
    description: str
    is_public: bool = field(name="public")
    created_by: str | None
    created_at: Time = field(name="creation_time")


class StoredHook(HookSummary):
    content: Annotated[str, Meta(description="The executable file, in base64")]


@operation(200, {"hooks": list[HookSummary]})
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the stored hooks that the project may use: its own and those of the site."""
    visible = artifacts.list_visible(tx, ArtifactKind.HOOK, request.project)
    return {"hooks": [fill(HookSummary, hook) for hook in visible]}


@operation(200, {"hook": StoredHook})
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return a version of a hook with its content."""
    hook = require_visible(tx, request, ArtifactKind.HOOK, request.path["hook_name"], request.path["number"])
    content = base64.b64encode(artifacts.content(tx, hook.id)).decode()
    return {"hook": fill(StoredHook, hook, content=content)}


@operation(201, {"hook": HookSummary}, errors=(409,), example={"name": "shout", "content": "IyEvYmluL3NoCg=="})
def create(request: RequestContext, tx: Tx, body: NewHook) -> dict[str, Any]:
    """
    Store the next version of a hook. The content of the newest version again returns that version.

    Raises Invalid, Forbidden, or RequestLimitExceeded if the project has its maximum of hooks.
    """
    owner, name, content = owner_of(request, public=body.public), _name(body.name), _content(body.content)
    request.subject.detail = name
    digest = hashlib.sha256(content).hexdigest()
    newest = artifacts.find_newest_own(tx, ArtifactKind.HOOK, owner, name)
    if newest is not None and newest.sha256 == digest:
        return {"hook": fill(HookSummary, newest)}
    check_limit(tx, "versions of hooks", owner, _MOST, lambda: artifacts.count(tx, ArtifactKind.HOOK, owner))
    hook = Artifact(
        id=str(uuid4()),
        project_id=owner,
        kind=ArtifactKind.HOOK,
        name=name,
        version=1 if newest is None else newest.version + 1,
        sha256=digest,
        size=len(content),
        description=body.description,
        created_by=request.user.user_name,
        created_at=tx.now,
    )
    artifacts.add(tx, hook, content)
    return {"hook": fill(HookSummary, hook)}


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a version of a hook. Later runs of configs that use this version fail where no agent has it."""
    hook = require_visible(tx, request, ArtifactKind.HOOK, request.path["hook_name"], request.path["number"])
    require_owned(request, hook)
    artifacts.delete(tx, hook.id)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(_NAME, value):
        raise Invalid(
            f"{value!r:.100} is no name of a hook: it begins with a letter or a digit, and has at most 63 letters,"
            " digits, hyphens and underscores"
        )
    return value


def _content(text: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise Invalid("content must be base64") from None
    if not content:
        raise Invalid("content is empty: a hook is an executable file")
    if len(content) > LONGEST:
        raise RequestLimitExceeded(f"a hook has at most {LONGEST} bytes, this one has {len(content)}")
    return content
