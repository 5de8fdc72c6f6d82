"""
Publication of documents to objects and queues, by durable jobs that a change of a document defers.

The digest of the last published document is stored, so that a change without effect on the document is not published.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from stoker.model.status import Action
from stoker.resources.base import target_of
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


def plan(tx: Tx, work: Work, server_id: str, resource_id: str) -> None:
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
    kind, context = session.type_of(resource), session.context
    by_name = context.env.transports.metadata_transports
    candidates = [by_name[name] for name in server_base.all_transports(resource) if name in by_name]
    transports = [transport for transport in candidates if isinstance(transport, PublishingTransport)]
    if not transports:
        return
    document = {**resource.metadata, **kind.live_metadata(context, resource)}
    key_id, key = server_base.signing_key(context, resource, servers.find(tx, server_id))
    content = [
        document,
        [transport.metadata_name for transport in transports],
        hashlib.sha256(key.encode()).hexdigest(),
    ]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    before = documents.published(tx, server_id)
    if before.digest != digest or args.get("again"):
        # The same content keeps its revision. The revision is a time, so that a restored database does not sign with
        # lower revisions.
        now = max(rows.to_micros(tx.now), before.revision + 1) if before.digest != digest else before.revision
        signed = agent_keys.sign(document, agent_key=key, server_id=key_id, revision=now)
        for transport in transports:
            transport.publish(tx, engine.env.platform, target_of(context, resource), signed)
        documents.set_published(tx, digest, now, server_id)
        # Fetches are not visible, so the agent's first report of a run is the receipt.
        unsent, channel = deployments.unsent(tx, server_id, session.stack.project_id), transports[0].metadata_name
        sent = [deployments.Delivery(id, run, channel, tx.now, received=False) for id, run in unsent]
        deployments.record_deliveries(tx, sent)
    if any(transport.expires for transport in transports):
        engine.env.work.defer_once(tx, PUBLISH, server_id, {**args, "again": True}, at=tx.now + _AGAIN)


def publish_again(tx: Tx, engine: Engine, server_id: str) -> None:
    """Publish the document again, because another client overwrote the published one."""
    resource_id = documents.carrier(tx, server_id)
    if resource_id is not None:
        args = {"server_id": server_id, "resource_id": resource_id, "again": True}
        engine.env.work.defer_once(tx, PUBLISH, server_id, args)
