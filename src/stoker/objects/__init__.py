"""
The object store: accounts, containers, and objects whose bytes live in the database.

That is the point of it: a document that is published, or a signal that is left in an object, is part of the
transaction it belongs to. ``Objects`` is what the other rooms use; the HTTP face calls the modules' own functions.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.objects import Stored
from stoker.objects import expiry, holding, tempurl, writing
from stoker.objects.port import OnWriting, OnWritten, Port
from stoker.store import containers
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

__all__ = ["Objects", "OnWriting", "OnWritten", "Port", "tempurl"]


class Objects:
    """
    All functions act through the transaction they are given. An account is a project's id, without Swift's ``AUTH_``.

    A listener may be set once at the start: ``port.on_written(tx, account, container, name, data)`` is called inside
    each transaction that writes an object, after the write; ``port.on_writing(tx, account, container, name)`` before
    anything is held, for a listener that has to hold something else first (a stack goes before everything).
    """

    def __init__(self, store: Store, work: Work) -> None:
        self.port = Port(work)
        #: What Stoker itself writes no listener hears.
        self._silent = Port(work)
        expiry.register(store, self.port)

    def put(
        self,
        tx: Tx,
        account: str,
        container: str,
        name: str,
        data: bytes,
        *,
        content_type: str = writing.DEFAULT_TYPE,
        headers: Mapping[str, str] | None = None,
    ) -> Stored:
        """``headers`` have lower-case names. Raises EntityNotFound for the container, Invalid for the name."""
        new = writing.New(
            account=account,
            container=container,
            name=name,
            data=data,
            content_type=content_type,
            headers=headers or {},
        )
        return writing.put(tx, self._silent, new)

    def get(self, tx: Tx, account: str, container: str, name: str) -> bytes:
        """Raises EntityNotFound."""
        return writing.read(tx, account, container, name)[1]

    def delete(self, tx: Tx, account: str, container: str, name: str) -> bool:
        """Whether there was one. Raises EntityNotFound for the container."""
        return writing.delete(tx, account, container, name).found

    def create_container(
        self,
        tx: Tx,
        account: str,
        name: str,
        headers: Mapping[str, str] | None = None,
        *,
        owner: str | None = None,
    ) -> bool:
        """False when it was there. ``owner``: the resource or server it is for. Raises Invalid."""
        return holding.create_container(tx, account, name, headers, owner=owner)

    def delete_container_and_all(self, tx: Tx, account: str, name: str) -> None:
        """Nothing happens when it is not there."""
        holding.delete_container_and_all(tx, account, name)

    def discard(self, tx: Tx, account: str, container: str, name: str) -> None:
        """Have no object there, and no container that was made for somebody and is empty now."""
        found = containers.find(tx, account, container)
        if found is None:
            return
        self.delete(tx, account, container, name)
        left = containers.find(tx, account, container)
        if left is not None and left.objects == 0 and left.owner is not None:
            holding.delete_container_and_all(tx, account, container)
