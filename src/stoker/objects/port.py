"""What a write into the object store needs besides its transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoker.store.tx import Tx
from stoker.work import Work

#: (tx, account, container, name): first thing in a transaction that writes an object.
OnWriting = Callable[[Tx, str, str, str], None]
#: (tx, account, container, name, data): once the object is written, in the same transaction.
OnWritten = Callable[[Tx, str, str, str, bytes], None]


@dataclass(slots=True)
class Port:
    work: Work
    #: Where a listener holds what it will need: a stack is held before the container its signals arrive in.
    on_writing: OnWriting | None = None
    #: What an object's content means to others. An error it raises undoes the write.
    on_written: OnWritten | None = None
