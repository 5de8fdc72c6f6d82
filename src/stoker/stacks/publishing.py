"""
Documents that are carried to where agents look for them: durable jobs, begun by whatever changes a document.

What was published last is remembered by its digest, so that a change which does not show costs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources import serving
from stoker.resources.base import Context, party_of
from stoker.resources.serving import PUBLISH
from stoker.stacks.closing import wake_resource
from stoker.stacks.engine import Engine
from stoker.stacks.transition import Transition
from stoker.store import documents, resources, runs, stacks
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx
from stoker.transports.base import Pushing
from stoker.work import defer_once

#: What expires is published anew in time.
_AGAIN = timedelta(minutes=40)


def plan(tx: Tx, engine: Engine, server_id: str, resource_id: str) -> None:
    """The document of a server has changed that is not only polled. However often, it is published once."""
    defer_once(engine.services.work, tx, PUBLISH, server_id, {"server_id": server_id, "resource_id": resource_id})


def signed(tx: Tx, engine: Engine, resource_id: str) -> None:
    """A URL was signed for the resource's agent: it waited for that, or the agent has to hear of it."""
    wake_resource(tx, engine, resource_id)
    resource = resources.find(tx, resource_id)
    server_id = (resource.physical_id or resource.id) if resource is not None else ""
    if documents.revision(tx, server_id):
        tx.touch(server_id)


def publish(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """By the server's transport, and by those it had before: an agent that has not heard of the change hears of it."""
    server_id = args["server_id"]
    known = resources.find(tx, args["resource_id"])
    # Held, and read again: who deletes it takes the places away, and this must not have them there again.
    stack = stacks.find(tx, known.stack_id, hold=True) if known else None
    resource = resources.find(tx, args["resource_id"])
    if resource is None or stack is None or resource.action is Action.DELETE:
        return
    transition = Transition(tx, engine, stack)
    kind, context = transition.type_of(resource), transition.context
    transports = _pushing(context, resource)
    if not transports:
        return
    document = {**resource.metadata, **kind.live_metadata(context, resource)}
    digest = hashlib.sha256(json.dumps([document, [each.metadata_name for each in transports]]).encode()).hexdigest()
    if documents.published(tx, server_id) != digest or args.get("again"):
        for each in transports:
            each.publish(tx, engine.services.site, party_of(context, resource), document)
        documents.set_published(tx, server_id, digest)
        _mark_delivered(tx, server_id, stack.project_id, transports[0].metadata_name)
    if any(each.expires for each in transports):
        defer_once(engine.services.work, tx, PUBLISH, server_id, {**args, "again": True}, at=tx.now + _AGAIN)


def _mark_delivered(tx: Tx, server_id: str, project_id: str, channel: str) -> None:
    """Where documents are carried to, nobody sees who takes them: being there is as good as being taken."""
    news = runs.undelivered(tx, server_id, project_id)
    for id, _ in news:
        tx.ring(deployment_topic(id))
    if news:
        runs.deliver(tx, [runs.Delivery(id, run, channel, tx.now) for id, run in news])


def _pushing(context: Context, resource: Resource) -> list[Pushing]:
    known = context.services.transports.carrying
    found = (known[name] for name in serving.all_transports(resource) if name in known)
    return [each for each in found if isinstance(each, Pushing)]
