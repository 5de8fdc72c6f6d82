"""
Publication of documents to objects and queues, by durable jobs that a change of a document defers.

The digest of the last published document is stored, so that a change without effect on the document is not published.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from stoker.model.stack import Action, Resource
from stoker.resources.base import Context, target_of
from stoker.servers import keys as agent_keys
from stoker.stacks.engine import Engine
from stoker.stacks.engine.progress import lock_resource
from stoker.store import deployments, documents, rows, servers
from stoker.store.tx import Tx
from stoker.transports.base import PublishingTransport
from stoker.types import server_base
from stoker.types.server_base import PUBLISH
from stoker.work import Work

#: Interval after which a document that expires on its transport is published again.
_AGAIN = timedelta(minutes=40)


def plan(tx: Tx, server_id: str, resource_id: str, work: Work) -> None:
    """Defer the publication of a server's changed document. Several changes cause one publication."""
    work.defer_once(tx, PUBLISH, server_id, {"server_id": server_id, "resource_id": resource_id})


def publish(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """
    Job: publish a server's document on its transport.

    The document is also published on earlier transports of the server, so that an agent that still uses one of them
    receives it.
    """
    server_id = args["server_id"]
    # Under the lock: a concurrent deletion removes objects and queues, which this job must not recreate.
    locked = lock_resource(tx, engine, args["resource_id"])
    if locked is None or locked[1].action is Action.DELETE:
        return
    session, resource = locked
    context, by_name = session.context, engine.env.transports.metadata_transports
    named = [by_name[name] for name in server_base.all_transports(resource) if name in by_name]
    transports = [transport for transport in named if isinstance(transport, PublishingTransport)]
    if not transports:
        return
    document = {**resource.metadata, **session.type_of(resource).live_metadata(context, resource)}
    _publish(context, resource, server_id, document, transports, is_repeated=bool(args.get("again")))
    if any(transport.expires for transport in transports):
        engine.env.work.defer_once(tx, PUBLISH, server_id, {**args, "again": True}, at=tx.now + _AGAIN)


def _publish(
    context: Context,
    resource: Resource,
    server_id: str,
    document: Mapping[str, Any],
    transports: Sequence[PublishingTransport],
    *,
    is_repeated: bool,
) -> None:
    """Publish the document of a server, unless it is the last one that was published, and not to be repeated."""
    tx, before = context.tx, documents.published(context.tx, server_id)
    key_id, key = server_base.signing_key(context, resource, servers.find(tx, server_id))
    names = [transport.metadata_name for transport in transports]
    content = [document, names, hashlib.sha256(key.encode()).hexdigest()]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    if before.digest == digest and not is_repeated:
        return
    # The same content keeps its revision. The revision is a time, so that a restored database does not sign with
    # lower revisions.
    now = max(rows.to_micros(tx.now), before.revision + 1) if before.digest != digest else before.revision
    signed = agent_keys.sign(document, agent_key=key, server_id=key_id, revision=now)
    for transport in transports:
        transport.publish(tx, context.env.platform, target_of(context, resource), signed)
    documents.set_published(tx, digest, now, server_id)
    # Fetches are not visible, so the agent's first report of a run is the receipt.
    unsent = documents.unsent(tx, server_id, context.project_id)
    sent = [deployments.Delivery(id, run, names[0], tx.now, received=False) for id, run in unsent]
    deployments.record_deliveries(tx, sent)


def publish_again(tx: Tx, engine: Engine, server_id: str) -> None:
    """Publish the document again, because another client overwrote the published one."""
    resource_id = documents.carrier(tx, server_id)
    if resource_id is not None:
        args = {"server_id": server_id, "resource_id": resource_id, "again": True}
        engine.env.work.defer_once(tx, PUBLISH, server_id, args)
