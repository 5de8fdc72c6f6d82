"""The environment of a write into the object store: jobs and callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoker.store.tx import Tx
from stoker.work import Work

#: Arguments: tx, account, container, name. Called first in a transaction that writes an object.
OnWriting = Callable[[Tx, str, str, str], None]
#: Arguments: tx, account, container, name, data. Called after the object is written, in the same transaction.
OnWritten = Callable[[Tx, str, str, str, bytes], None]


@dataclass(frozen=True, slots=True)
class Port:
    """What a write needs besides its transaction: jobs and the callbacks of the rest of Stoker."""

    work: Work
    #: Takes the locks that the callback needs: a stack must be locked before the container in which its signals arrive.
    on_writing: OnWriting | None = None
    #: Processes the content, for example a signal. An exception undoes the write.
    on_written: OnWritten | None = None
