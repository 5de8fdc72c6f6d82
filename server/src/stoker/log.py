"""
Logging: readable lines on a terminal, JSON otherwise; fields whose names suggest a secret are always hidden.

Every event has a stable id such as ``stack.ended``; all facts are fields. ``request_id`` and ``job`` are context
variables (``structlog.contextvars``), which each request and each job binds. A transaction may run on the thread of
another request, so code in a transaction logs with ``tx.after_commit``, which runs in the caller's own context.
"""

from __future__ import annotations

import logging
import logging.handlers
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


def hide_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor that hides the values of fields whose names suggest a secret."""
    for name in event:
        if any(word in name for word in _SECRET):
            event[name] = "<hidden>"
    return event


def configure(level: str, folder: Path | None, *, worker: int | None = None) -> None:
    """
    Log to standard error and to ``stoker.log`` in ``folder``, which is rotated by size; None: to standard error only.

    ``worker``: the number of this worker process, which each of its records has. Raises Invalid for an unknown level.
    """
    if level.lower() not in _LEVELS:
        raise Invalid(f"log_level must be debug, info, warning or error, not {level!r}")

    def add_worker(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["worker"] = worker
        return event

    shared: list[Any] = [
        *([] if worker is None else [add_worker]),
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
    ]
    renderer: Any = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    terminal = logging.StreamHandler()
    terminal.setFormatter(_formatter(shared, renderer))
    handlers: list[logging.Handler] = [terminal]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        file = logging.handlers.RotatingFileHandler(
            folder / "stoker.log", maxBytes=_FILE_BYTES, backupCount=_EARLIER_FILES, encoding="utf-8"
        )
        file.setFormatter(_formatter(shared, structlog.processors.JSONRenderer()))
        handlers.append(file)
    logging.basicConfig(level=level.upper(), handlers=handlers, force=True)
    for noisy in ("httpcore2", "httpx2", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it warns of each connection beyond its pool
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
