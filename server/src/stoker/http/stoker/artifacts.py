"""
/v1/{project}/hooks and catalog: versioned artifacts that users store (Stoker's own).

Hooks are what agents fetch for the runs of a config; entries of the catalog are typed configs, some of which Stoker
ships.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Annotated, Any, Literal
from uuid import uuid4

from msgspec import Meta, field

from stoker import hot
from stoker.catalog import entry as entries
from stoker.catalog import shipped
from stoker.catalog.entry import Entry
from stoker.deployments import schema
from stoker.hot.text import MAX_TEMPLATE, read
from stoker.http.contracts import Answer, Body, Count, Id, LongText, Text, Time, fill, operation
from stoker.http.request import RequestContext
from stoker.model.artifact import Artifact, ArtifactKind
from stoker.model.errors import Conflict, EntityNotFound, Forbidden, Invalid, RequestLimitExceeded
from stoker.model.ids import SITE
from stoker.store import artifacts
from stoker.store.tx import Tx, check_limit

#: Largest hook in bytes. An agent keeps the hooks that it has fetched.
LONGEST = 1024 * 1024
#: Number of artifacts of one kind that one project may store.
_MOST = 1000
_HOOK_NAME = "[A-Za-z0-9][A-Za-z0-9_-]{0,62}"
_NOUNS = {ArtifactKind.HOOK: "hook", ArtifactKind.ENTRY: "catalog entry"}
_LIMITED = {ArtifactKind.HOOK: "versions of hooks", ArtifactKind.ENTRY: "catalog entries"}
Origin = Literal["stoker", "site", "project"]
Public = Annotated[bool, Meta(description="Every project may use it; only for administrators of the site")]
HookName = Annotated[
    str,
    Meta(
        extra_json_schema={"pattern": f"^{_HOOK_NAME}$"},
        description="Usually the group whose configs the hook runs",
    ),
]


class NewHook(Body):
    name: HookName
    content: Annotated[str, Meta(description="The executable file, in base64")]
    description: LongText = ""
    public: Public = False


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


class NewEntry(Body):
    text: Annotated[Text, Meta(description="The entry as a document in YAML")]
    public: Public = False


class EntrySummary(Answer):
    name: str
    version: Count
    description: str
    origin: Annotated[Origin, Meta(description="Who provides the entry: Stoker, the site or the project")]


class CatalogEntryDetails(EntrySummary):
    group: str
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    options: dict[str, Any]
    actions: list[str]
    example: dict[str, Any]
    config: str
    text: LongText


@operation(200, {"hooks": list[HookSummary]})
def index_hooks(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the stored hooks that the project may use: its own and those of the site."""
    visible = artifacts.list_visible(tx, ArtifactKind.HOOK, request.project)
    return {"hooks": [fill(HookSummary, hook) for hook in visible]}


@operation(200, {"hook": StoredHook})
def show_hook(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return a version of a hook with its content."""
    hook = _find(tx, request, ArtifactKind.HOOK)
    content = base64.b64encode(artifacts.content(tx, hook.id)).decode()
    return {"hook": fill(StoredHook, hook, content=content)}


@operation(201, {"hook": HookSummary}, errors=(409,), example={"name": "shout", "content": "IyEvYmluL3NoCg=="})
def create_hook(request: RequestContext, tx: Tx, body: NewHook) -> dict[str, Any]:
    """
    Store the next version of a hook. The content of the newest version again returns that version.

    Raises Invalid, Forbidden, or RequestLimitExceeded if the project has its maximum of hooks.
    """
    owner, content = _owner_of(request, public=body.public), _decode(body.content)
    name = request.subject.detail = _check_hook_name(body.name)
    newest = artifacts.find_newest_own(tx, ArtifactKind.HOOK, owner, name)
    if newest is not None and newest.sha256 == hashlib.sha256(content).hexdigest():
        return {"hook": fill(HookSummary, newest)}
    version = 1 if newest is None else newest.version + 1
    hook = _add(tx, request, ArtifactKind.HOOK, owner, name, version, body.description, content)
    return {"hook": fill(HookSummary, hook)}


@operation(204)
def delete_hook(request: RequestContext, tx: Tx) -> None:
    """Delete a version of a hook. Later runs of configs that use this version fail where no agent has it."""
    _delete(tx, request, ArtifactKind.HOOK)


@operation(200, {"entries": list[EntrySummary]})
def index_entries(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the entries that the project may use."""
    own = artifacts.list_visible(tx, ArtifactKind.ENTRY, request.project)
    texts = (shipped.find_entry(name, version) or "" for name, version in shipped.list_entries())
    rows = [
        *(fill(EntrySummary, _parse(text), origin="stoker") for text in texts),
        *(fill(EntrySummary, artifact, origin=_origin(artifact)) for artifact in own),
    ]
    return {"entries": sorted(rows, key=lambda row: (row.name, row.version, row.origin))}


@operation(200, {"entry": CatalogEntryDetails})
def show_entry(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return an entry."""
    text, origin = _find_shipped(request), "stoker"
    if text is None:
        artifact = _find(tx, request, ArtifactKind.ENTRY)
        text, origin = artifacts.content(tx, artifact.id).decode(), _origin(artifact)
    entry = _parse(text)
    return {
        "entry": fill(
            CatalogEntryDetails,
            entry,
            origin=origin,
            text=text,
        )
    }


@operation(201, {"entry": EntrySummary}, errors=(409,), example={"text": "stoker_catalog_version: 1\n…"})
def create_entry(request: RequestContext, tx: Tx, body: NewEntry) -> dict[str, Any]:
    """Add an entry. Raises Invalid, Forbidden, or Conflict if this version of the entry exists."""
    owner, entry = _owner_of(request, public=body.public), _check_entry(body.text)
    request.subject.detail = f"{entry.name} {entry.version}"
    if shipped.find_entry(entry.name, entry.version) is not None:
        raise Conflict(f"Stoker ships {entry.name}/{entry.version}: choose another name or version.")
    content = body.text.encode()
    artifact = _add(tx, request, ArtifactKind.ENTRY, owner, entry.name, entry.version, entry.description, content)
    return {"entry": fill(EntrySummary, entry, origin=_origin(artifact))}


@operation(204)
def delete_entry(request: RequestContext, tx: Tx) -> None:
    """Delete an entry. Stacks that use the entry keep their copy of it."""
    if _find_shipped(request) is not None:
        raise Conflict(f"Stoker ships {request.path['entry_name']}/{request.path['number']}: it cannot be deleted.")
    _delete(tx, request, ArtifactKind.ENTRY)


def _owner_of(request: RequestContext, *, public: bool) -> str:
    """Return the owner of a new artifact. Raises Forbidden for a public one, unless the user administers the site."""
    if public and not request.user.site_admin:
        raise Forbidden("Only an administrator of the site stores what every project may use.")
    return SITE if public else request.project


def _add(
    tx: Tx,
    request: RequestContext,
    kind: ArtifactKind,
    owner: str,
    name: str,
    version: int,
    description: str,
    content: bytes,
) -> Artifact:
    check_limit(tx, _LIMITED[kind], owner, _MOST, lambda: artifacts.count(tx, kind, owner))
    artifact = Artifact(
        id=str(uuid4()),
        project_id=owner,
        kind=kind,
        name=name,
        version=version,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        description=description,
        created_by=request.user.user_name,
        created_at=tx.now,
    )
    artifacts.add(tx, artifact, content)
    return artifact


def _find(tx: Tx, request: RequestContext, kind: ArtifactKind) -> Artifact:
    """Return the artifact of the path, which the project can read. Raises EntityNotFound."""
    name, version = request.path[f"{'hook' if kind is ArtifactKind.HOOK else 'entry'}_name"], request.path["number"]
    artifact = artifacts.find(tx, kind, request.project, name, _version_of(request) or 0)
    if artifact is None:
        raise EntityNotFound(f"There is no {_NOUNS[kind]} {name}/{version}.")
    return artifact


def _find_shipped(request: RequestContext) -> str | None:
    """Return the text of the path's entry if Stoker ships it."""
    version = _version_of(request)
    return None if version is None else shipped.find_entry(request.path["entry_name"], version)


def _version_of(request: RequestContext) -> int | None:
    text = request.path["number"]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _delete(tx: Tx, request: RequestContext, kind: ArtifactKind) -> None:
    """Delete the artifact of the path. Raises EntityNotFound, or Forbidden unless the user may delete it."""
    artifact = _find(tx, request, kind)
    if artifact.is_public and not request.user.site_admin:
        raise Forbidden(f"{artifact.name}/{artifact.version} belongs to the site: only its administrators delete it.")
    artifacts.delete(tx, artifact.id)


def _check_entry(text: str) -> Entry:
    """Check the text of an entry, as a config and as a template. Raises Invalid."""
    entry = _parse(text)
    schema.inputs(entry.config_inputs())
    schema.outputs(entry.config_outputs())
    hot.parse(text)
    return entry


def _parse(text: str) -> Entry:
    document = read(text, "Catalog entry", MAX_TEMPLATE)
    if not entries.is_entry_text(text) or not entries.is_document(document):
        raise Invalid(f"a catalog entry begins with `{entries.VERSION_KEY}: {entries.FORMAT}`")
    return entries.parse(document)


def _origin(artifact: Artifact) -> Origin:
    return "site" if artifact.is_public else "project"


def _check_hook_name(name: str) -> str:
    if not re.fullmatch(_HOOK_NAME, name):
        raise Invalid(
            f"{name!r:.100} is no name of a hook: it begins with a letter or a digit, and has at most 63 letters,"
            " digits, hyphens and underscores"
        )
    return name


def _decode(text: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise Invalid("content must be base64") from None
    if not content:
        raise Invalid("content is empty: a hook is an executable file")
    if len(content) > LONGEST:
        raise RequestLimitExceeded(f"a hook has at most {LONGEST} bytes, this one has {len(content)}")
    return content
