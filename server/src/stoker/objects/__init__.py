"""
The object store: accounts, containers, and objects whose bytes are stored in the database.

Because the bytes are in the database, publishing a document and receiving a signal in an object are part of the
transaction they belong to. Other packages use ``Objects``; the HTTP API calls the functions of the modules.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.objects import Stored
from stoker.objects import container_operations, object_operations, tempurl
from stoker.objects.object_operations import OnWriting, OnWritten, Port
from stoker.store import containers
from stoker.store.tx import Tx

__all__ = ["Objects", "tempurl"]

#: A port without callbacks, for objects that Stoker itself writes.
_SILENT = Port()


class Objects:
    """
    The interface of the object store for the rest of Stoker.

    All methods act within the given transaction, with the rights of the owner of server and deployment containers. An
    account is a project's id, without Swift's prefix ``AUTH_``.

    ``on_writing(tx, account, container, name)`` is called first in each transaction in which a client writes an object,
    so that the callback can take locks that precede the container, such as a stack. ``on_written(tx, account,
    container, name, data)`` is called after the write, in the same transaction.
    """

    def __init__(self, on_writing: OnWriting | None = None, on_written: OnWritten | None = None) -> None:
        self.port = Port(on_writing, on_written)

    def put(
        self,
        tx: Tx,
        account: str,
        container: str,
        name: str,
        data: bytes,
        *,
        content_type: str = object_operations.DEFAULT_TYPE,
        headers: Mapping[str, str] | None = None,
        secret: bool = False,
    ) -> Stored:
        """
        Write an object.

        The names in ``headers`` are lower case. ``secret`` encrypts the bytes in the database. Raises EntityNotFound
        for the container, Invalid for the name.
        """
        new = object_operations.New(
            account=account,
            container=container,
            name=name,
            data=data,
            content_type=content_type,
            headers=headers or {},
            secret=secret,
        )
        return object_operations.put(tx, _SILENT, new, as_owner=True)

    def get(self, tx: Tx, account: str, container: str, name: str) -> bytes:
        """The bytes of an object. Raises EntityNotFound."""
        return object_operations.read(tx, account, container, name)[1]

    def delete(self, tx: Tx, account: str, container: str, name: str) -> bool:
        """Delete an object. Returns whether it existed. Raises EntityNotFound for the container."""
        return object_operations.delete(tx, account, container, name, as_owner=True)

    def create_container(
        self,
        tx: Tx,
        account: str,
        name: str,
        headers: Mapping[str, str] | None = None,
        *,
        owner: str | None = None,
    ) -> bool:
        """
        Create a container. Returns False if it exists already.

        ``owner`` is the id of the resource or server that needs the container; it replaces a container of that name
        that a user created. Raises Invalid.
        """
        return container_operations.create_container(tx, account, name, headers, owner=owner)

    def delete_container_and_all(self, tx: Tx, account: str, name: str) -> None:
        """Delete a container with all objects; does nothing if it does not exist."""
        container_operations.delete_container_and_all(tx, account, name)

    def discard(self, tx: Tx, account: str, container: str, name: str) -> None:
        """Delete an object, and also its container if the container has an owner and is now empty."""
        existing = containers.find(tx, account, container)
        if existing is None:
            return
        self.delete(tx, account, container, name)
        left = containers.find(tx, account, container)
        if left is not None and left.objects == 0 and left.owner is not None:
            container_operations.delete_container_and_all(tx, account, container)
