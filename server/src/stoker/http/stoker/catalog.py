"""/v1/{project}/catalog: typed, versioned configs: those that Stoker ships, and those of users (Stoker's own)."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal
from uuid import uuid4

from msgspec import Meta

from stoker import hot
from stoker.catalog import entry as entries
from stoker.catalog import shipped
from stoker.catalog.entry import Entry
from stoker.deployments import schema
from stoker.hot.bounds import MAX_TEMPLATE
from stoker.hot.text import read
from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Count, Flag, LongText, Text
from stoker.http.request import RequestContext
from stoker.http.stoker.artifact_requests import owner_of, require_owned, require_visible
from stoker.model.artifact import Artifact, ArtifactKind
from stoker.model.errors import Conflict, Invalid
from stoker.store import artifacts
from stoker.store.limits import check_limit
from stoker.store.tx import Tx

#: Number of entries that one project may add.
_MOST = 1000

Origin = Literal["stoker", "site", "project"]


class NewEntry(Body):
    text: Annotated[Text, Meta(description="The entry as a document in YAML")]
    public: Annotated[Flag, Meta(description="Every project may use it; only for administrators of the site")] = False


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


@operation(200, {"entries": list[EntrySummary]})
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """List the entries that the project may use."""
    own = artifacts.list_visible(tx, ArtifactKind.ENTRY, request.project)
    texts = (shipped.find_entry(name, version) or "" for name, version in shipped.list_entries())
    rows = [
        *(_summary(_parse(text), "stoker") for text in texts),
        *(EntrySummary(item.name, item.version, item.description, _origin(item)) for item in own),
    ]
    return {"entries": sorted(rows, key=lambda row: (row.name, row.version, row.origin))}


@operation(200, {"entry": CatalogEntryDetails})
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return an entry."""
    name, version = request.path["entry_name"], request.path["number"]
    text = shipped.find_entry(name, int(version)) if version.isdecimal() and len(version) < 10 else None
    origin: Origin = "stoker"
    if text is None:
        artifact = require_visible(tx, request, ArtifactKind.ENTRY, name, version)
        origin, text = _origin(artifact), artifacts.content(tx, artifact.id).decode()
    entry = _parse(text)
    return {
        "entry": CatalogEntryDetails(
            name=entry.name,
            version=entry.version,
            description=entry.description,
            origin=origin,
            group=entry.group,
            inputs=[dict(item) for item in entry.inputs],
            outputs=[dict(item) for item in entry.outputs],
            options=dict(entry.options),
            actions=list(entry.actions),
            example=dict(entry.example),
            config=entry.config,
            text=text,
        )
    }


@operation(201, {"entry": EntrySummary}, errors=(409,), example={"text": "stoker_catalog_version: 1\n…"})
def create(request: RequestContext, tx: Tx, body: NewEntry) -> dict[str, Any]:
    """Add an entry. Raises Invalid, Forbidden, or Conflict if this version of the entry exists."""
    owner, entry = owner_of(request, public=body.public), check(body.text)
    request.subject.detail = f"{entry.name} {entry.version}"
    if shipped.find_entry(entry.name, entry.version) is not None:
        raise Conflict(f"Stoker ships {entry.name}/{entry.version}: choose another name or version.")
    check_limit(tx, "catalog entries", owner, _MOST, lambda: artifacts.count(tx, ArtifactKind.ENTRY, owner))
    content = body.text.encode()
    artifact = Artifact(
        id=str(uuid4()),
        project_id=owner,
        kind=ArtifactKind.ENTRY,
        name=entry.name,
        version=entry.version,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        description=entry.description,
        created_by=request.user.user_name,
        created_at=tx.now,
    )
    artifacts.add(tx, artifact, content)
    return {"entry": _summary(entry, _origin(artifact))}


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete an entry. Stacks that use the entry keep their copy of it."""
    name, version = request.path["entry_name"], request.path["number"]
    if version.isdecimal() and len(version) < 10 and shipped.find_entry(name, int(version)) is not None:
        raise Conflict(f"Stoker ships {name}/{version}: it cannot be deleted.")
    artifact = require_visible(tx, request, ArtifactKind.ENTRY, name, version)
    require_owned(request, artifact)
    artifacts.delete(tx, artifact.id)


def check(text: str) -> Entry:
    """Check the text of an entry, as a config and as a template. Raises Invalid."""
    entry = _parse(text)
    schema.inputs(entry.config_inputs())
    schema.outputs(list(entry.outputs))
    hot.parse(text)
    return entry


def _parse(text: str) -> Entry:
    document = read(text, "Catalog entry", MAX_TEMPLATE)
    if not entries.is_entry_text(text) or not entries.is_document(document):
        raise Invalid(f"a catalog entry begins with `{entries.VERSION_KEY}: {entries.FORMAT}`")
    return entries.parse(document)


def _summary(entry: Entry, origin: Origin) -> EntrySummary:
    return EntrySummary(entry.name, entry.version, entry.description, origin)


def _origin(artifact: Artifact) -> Origin:
    return "site" if artifact.is_public else "project"
