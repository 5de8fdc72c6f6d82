"""The interface of server providers."""

from __future__ import annotations

from typing import Protocol

from stoker.model.server import ServerOwner
from stoker.store.tx import Tx


class Compute(Protocol):
    """
    A provider that creates servers for ``OS::Nova::Server``.

    It wakes the resource, which has the server's id, of each server that has started, or has failed for a reason:
    ``tx.wake(Owner.resource(server_id), Settled(reason))``. Calls inside a transaction perform no I/O: an effect
    outside the database is a job.

    Example of a provider for a list of existing machines. Its servers need no job, because they already run::

        class Pool:
            def __init__(self, addresses):
                self._free, self._used = list(addresses), {}

            def create(self, tx, *, server_id, project_id, name, owner):
                self._used[server_id] = self._free.pop()
                tx.wake(Owner.resource(server_id))

            def delete(self, tx, server_id):
                self._free.append(self._used.pop(server_id))

            def address(self, server_id):
                return self._used[server_id]

            def resume(self):
                pass  # the machines run without Stoker

            def shut_down(self):
                pass
    """

    def create(self, tx: Tx, *, server_id: str, project_id: str, name: str, owner: ServerOwner) -> None:
        """Record the server and defer the job that starts it. ``server_id`` is also the id of its resource."""

    def delete(self, tx: Tx, server_id: str) -> None:
        """Delete the server's record and defer the job that removes the server."""

    def address(self, server_id: str) -> str:
        """Return the server's IP address."""
        ...

    def resume(self) -> None:
        """Continue after a restart of Stoker; called once at start-up."""

    def shut_down(self) -> None:
        """Release what must not survive Stoker; called once at a regular shutdown."""
