"""/agent/v1/facts and refusals: what an agent reports about its machine and itself."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stoker.http import audit_trail
from stoker.http.contracts import convert, operation
from stoker.http.fields import NO_NUL, Body, Count, Name, described
from stoker.http.request import RequestContext
from stoker.model.audit import Outcome
from stoker.model.errors import Unauthorized
from stoker.model.facts import CUSTOM, LABELS
from stoker.servers import facts as server_facts
from stoker.store import servers
from stoker.store.tx import Tx
from stoker.types import publishing

_Names = Annotated[list[Name], Meta(max_length=256)]


class OsFacts(Body, omit_defaults=True):
    """The operating system; ``family`` is debian, redhat, suse, arch, or its id."""

    id: Name | None = None
    family: Name | None = None
    name: Name | None = None
    version: Name | None = None
    codename: Name | None = None


class CloudFacts(Body, omit_defaults=True):
    """The machine as its cloud knows it."""

    id: Name | None = None
    name: Name | None = None
    region: Name | None = None
    zone: Name | None = None


class Facts(Body, omit_defaults=True):
    """
    Facts of a machine, at most 32 KB.

    ``custom`` are the facts of the site. Members that are not listed here are added to ``custom``, except ``labels``,
    which is ignored: the labels among the facts of a server are those that it has at Stoker.
    """

    os: OsFacts | None = None
    kernel: Name | None = None
    arch: Name | None = None
    cpus: Count | None = None
    memory_mb: Count | None = None
    hostname: Name | None = None
    fqdn: Name | None = None
    address: Name | None = None
    networks: Annotated[dict[str, _Names], Meta(max_length=256)] | None = None
    cloud: CloudFacts | None = None
    virtualization: Name | None = None
    container: Name | None = None
    python: Name | None = None
    agent: Name | None = None
    hooks: _Names | None = None
    tools: Annotated[dict[str, Name], Meta(max_length=256)] | None = None
    #: Why the agent can start no run; absent if it can.
    problem: Annotated[str, Meta(max_length=2000)] | None = None
    custom: dict[str, Any] | None = None


@operation(204, example={"os": {"id": "debian", "family": "debian", "version": "12"}, "memory_mb": 7941})
def put_facts(request: RequestContext, tx: Tx, body: Annotated[Any, described(Facts)]) -> None:
    """Replace the facts of the server."""
    facts: Facts = convert(body, Facts, "the facts")
    unknown = {name: value for name, value in body.items() if name not in Facts.__struct_fields__ and name != LABELS}
    values: dict[str, Any] = msgspec.to_builtins(facts)
    if unknown:
        values[CUSTOM] = {**(values.get(CUSTOM) or {}), **unknown}
    server_facts.store_facts(tx, request.server, values)


class DocumentRefusal(Body):
    """``source`` is the section of the agent's configuration for the service that delivered the document."""

    source: Annotated[str, Meta(max_length=32, pattern=NO_NUL)] | None = None
    reason: Annotated[str, Meta(max_length=500, pattern=NO_NUL)] | None = None


@operation(204)
def refuse_document(request: RequestContext, tx: Tx, body: DocumentRefusal) -> None:
    """Record the refusal in the audit log, and publish the document again to replace the refused one."""
    server = servers.find(tx, request.server)
    if server is None:
        raise Unauthorized("This key is not valid, or has been revoked.")
    action, reason = f"take a document from {body.source or '?'}", f"The agent refused a document: {body.reason or ''}"
    audit_trail.record_agent(tx, server, action, reason, Outcome.REFUSED)
    publishing.publish_again(tx, request.app.engine, server.id)
