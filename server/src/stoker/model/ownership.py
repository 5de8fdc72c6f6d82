"""
Access to containers and queues that Stoker creates for servers and deployments.

They contain documents and results. Users of the project may not write them, because an agent trusts them, and may not
read documents and results, because these contain secrets.
"""

from __future__ import annotations

from stoker.model.errors import Forbidden, WriteRefused
from stoker.model.messaging import Queue
from stoker.model.objects import Container, Stored


def belongs_to_agents(thing: Container | Queue | None) -> bool:
    """Return whether Stoker created the container or queue for a server or deployment. False for None."""
    return thing is not None and thing.owner is not None


def check_write(thing: Container | Queue, *, as_owner: bool) -> None:
    """
    Check that a caller may write to a container or queue.

    ``as_owner`` states that the caller is Stoker itself, or has a login or pre-signed URL that Stoker created for
    exactly this resource. Without it, raises WriteRefused if the container or queue belongs to a server or deployment.
    """
    if thing.owner is None or as_owner:
        return
    if isinstance(thing, Queue):
        raise WriteRefused("queue", thing.name, thing.owner, thing.project_id)
    raise WriteRefused("container", thing.name, thing.owner, thing.account)


def check_read(thing: Stored | Queue, *, as_owner: bool) -> None:
    """
    Check that a caller may read an object or queue.

    Raises Forbidden for a document or result, unless ``as_owner`` is set (see ``check_write``).
    """
    carries = thing.encrypted if isinstance(thing, Stored) else thing.owner is not None
    if carries and not as_owner:
        kind = "object" if isinstance(thing, Stored) else "queue"
        raise Forbidden(
            f"the {kind} {thing.name!r:.100} carries what a server is to run or has reported, with secrets in it: the "
            "server's agent alone reads it. Ask for the deployments instead."
        )
