"""
Durable jobs and deadlines.

A transaction defers the jobs that it makes necessary. A job runs at least once, outside any transaction, in a worker
thread, so its handler must be idempotent.
"""

from __future__ import annotations

from stoker.work.dispatcher import Handler, PermanentFailure
from stoker.work.queue import Work

__all__ = ["Handler", "PermanentFailure", "Work"]
