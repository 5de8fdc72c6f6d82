"""The callbacks by which lower layers notify the stack engine, which is created after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stoker.late_bound import LateBound
from stoker.model.messaging import Message
from stoker.stacks import publishing
from stoker.stacks.engine import Engine
from stoker.stacks.engine.commit import wake_resource
from stoker.stacks.inbound_signals import InboundSignals
from stoker.store.open import Store
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Callbacks:
    """
    The callbacks of one application; constructors receive the ones that they need.

    All act in the transaction that they receive, except those of local servers, which open their own.
    """

    #: (tx, project id, queue, messages): clients post messages. Called before the queue is locked.
    message_posted: Callable[[Tx, str, str, Sequence[Message]], None]
    #: (tx, account, container, object): a client is about to write the object.
    object_writing: Callable[[Tx, str, str, str], None]
    #: (tx, account, container, object, data): a client has written the object.
    object_written: Callable[[Tx, str, str, str, bytes], None]
    #: (tx, resource id, data): an external service has a result for the resource.
    result_received: Callable[[Tx, str, bytes], None]
    #: (tx, resource id): an external service signed a URL for the resource's agent, or refused to.
    url_signed: Callable[[Tx, str], None]
    #: (tx, resource id, reason): Keystone has the resource's user, or refuses it for this reason.
    user_settled: Callable[[Tx, str, str | None], None]
    #: (tx, resource id): the cloud has ended the action on the resource's object, or says what the action waits for.
    cloud_changed: Callable[[Tx, str], None]
    #: (server id): the agent of a local server runs.
    server_started: Callable[[str], None]
    #: (server id, reason): the agent of a local server cannot start.
    server_failed: Callable[[str, str], None]


def create_callbacks(store: Store, engine: LateBound[Engine]) -> Callbacks:
    """Return callbacks that use the engine once it is bound."""

    def signals() -> InboundSignals:
        return InboundSignals(engine.get())

    def wake(tx: Tx, resource_id: str, failure: str | None = None) -> None:
        wake_resource(tx, engine.get(), resource_id, failure)

    return Callbacks(
        message_posted=lambda tx, project_id, queue, messages: signals().message(tx, project_id, queue, messages),
        object_writing=lambda tx, account, container, name: signals().before_object(tx, account, container, name),
        object_written=lambda tx, account, container, name, data: signals().object(tx, account, container, name, data),
        result_received=lambda tx, resource_id, data: signals().remote_result(tx, resource_id, data),
        url_signed=lambda tx, resource_id: publishing.is_signed(tx, engine.get(), resource_id),
        user_settled=wake,
        cloud_changed=wake,
        # The id of a local server is also the id of its resource.
        server_started=lambda id: store.write(lambda tx: wake(tx, id)),
        server_failed=lambda id, reason: store.write(lambda tx: wake(tx, id, reason)),
    )
