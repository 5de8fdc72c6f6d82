"""Limits of the number of rows of one owner."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model.errors import RequestLimitExceeded
from stoker.store.tx import Tx

#: Rows that concurrent transactions may add at a time. A count that is further from the limit needs no lock.
_CONCURRENT = 500


def check_limit(tx: Tx, noun: str, owner: str, limit: int, count: Callable[[], int], *, new: int = 1) -> None:
    """
    Check that ``owner``, a project, may have ``new`` more rows; the transaction must add them.

    ``noun`` names the rows in the error. ``limit`` -1: no limit. ``count`` returns the present number; it is called
    twice near the limit, because concurrent transactions must not exceed the limit together. Raises
    RequestLimitExceeded.
    """
    if limit < 0 or count() + new + _CONCURRENT <= limit:
        return
    tx.advisory_lock(f"limit {noun} {owner}")
    if count() + new > limit:
        raise RequestLimitExceeded(f"this project may have {limit} {noun} and has them: delete some")
