"""
Logging: readable lines on a terminal, JSON otherwise; fields whose names suggest a secret are always hidden.

Every event has a stable id such as ``stack.ended``; all facts are fields. ``request_id`` and ``job`` are context
variables (``structlog.contextvars``), which each request and each job binds. A transaction may run on the thread of
another request, so code in a transaction logs with ``tx.after_commit``, which runs in the caller's own context.
"""

from __future__ import annotations

import logging
import logging.handlers
import socket
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import structlog

from stoker.model.errors import Invalid

_SECRET = ("password", "token", "secret", "key")
_LEVELS = ("debug", "info", "warning", "error")
#: Bytes of one log file, and the number of earlier files that are kept.
_FILE_BYTES, _EARLIER_FILES = 16 * 1024 * 1024, 4
#: Bytes of one record of a worker process; the rest is cut.
LONGEST_RECORD = 64 * 1024


def hide_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor that hides the values of fields whose names suggest a secret."""
    for name in event:
        if any(word in name for word in _SECRET):
            event[name] = "<hidden>"
    return event


def send_to(supervisor: socket.socket, worker: int) -> None:
    """
    Send the records for the log file to the supervisor, because two processes cannot rotate one file.

    ``worker``: the number of this process, which each record of it has.
    """
    structlog.contextvars.clear_contextvars()
    sender = _Sender(supervisor)
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, logging.handlers.RotatingFileHandler):
            sender.setFormatter(handler.formatter)
            root.removeHandler(handler)
            handler.close()
    root.addHandler(sender)

    def add_worker(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["worker"] = worker
        return event

    processors = structlog.get_config()["processors"]
    structlog.configure(processors=[add_worker, *processors])


def write_line(record: bytes) -> None:
    """Write a record of ``send_to`` to the log file. A full disk loses the record, but does not end the supervisor."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.handlers.RotatingFileHandler):
            line = record.decode(errors="replace")
            # The formatter returns the line unchanged: the worker has formatted it.
            handler.acquire()
            try:
                stream = handler.stream
                assert stream is not None, "only a handler with a delay has no stream"
                if stream.tell() + len(record) >= handler.maxBytes:
                    handler.doRollover()
                    stream = handler.stream or stream
                stream.write(line + handler.terminator)
                handler.flush()
            except OSError as error:
                print(f"stoker: cannot write the log: {error}", file=sys.stderr)
            finally:
                handler.release()


class _Sender(logging.Handler):
    """Sends formatted records over a socket, one datagram each."""

    def __init__(self, to: socket.socket) -> None:
        super().__init__()
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._to.send(self.format(record).encode(errors="replace")[:LONGEST_RECORD])
        except Exception:
            self.handleError(record)


def configure(level: str, folder: Path) -> None:
    """
    Log to standard error and to ``stoker.log`` in ``folder``, which is rotated by size.

    Raises Invalid for an unknown level.
    """
    if level.lower() not in _LEVELS:
        raise Invalid(f"log_level must be debug, info, warning or error, not {level!r}")
    folder.mkdir(parents=True, exist_ok=True)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
    ]
    renderer: Any = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    terminal = logging.StreamHandler()
    terminal.setFormatter(_formatter(shared, renderer))
    file = logging.handlers.RotatingFileHandler(
        folder / "stoker.log", maxBytes=_FILE_BYTES, backupCount=_EARLIER_FILES, encoding="utf-8"
    )
    file.setFormatter(_formatter(shared, structlog.processors.JSONRenderer()))
    logging.basicConfig(level=level.upper(), handlers=[terminal, file], force=True)
    for noisy in ("alembic", "httpx2", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _formatter(shared: list[Any], renderer: Any) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            renderer,
        ],
    )
