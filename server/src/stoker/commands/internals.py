"""Checks, before the server starts, the internals of libraries that it uses."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version

from stoker.model.errors import Unavailable

#: Names without documentation that the server's HTTP layer and its driver of PostgreSQL use, by module. A release of
#: the library may rename them at any time.
INTERNALS: dict[str, tuple[str, ...]] = {
    "uvicorn.protocols.http.httptools_impl": (
        "STATUS_LINE",
        "HttpToolsProtocol._start_asgi_task",
        "HttpToolsProtocol.on_body",
        "HttpToolsProtocol.on_header",
        "HttpToolsProtocol.on_headers_complete",
        "HttpToolsProtocol.on_message_begin",
        "HttpToolsProtocol.on_message_complete",
        "HttpToolsProtocol.on_response_complete",
        "HttpToolsProtocol.on_url",
        "HttpToolsProtocol.pause_writing",
        "HttpToolsProtocol.resume_writing",
    ),
    "uvicorn.protocols.http.flow_control": ("FlowControl.resume_reading",),
    "uvicorn": ("Server.on_tick", "Server.shutdown"),
    "psycopg.adapt": (
        "PyFormat.AUTO",
        "Transformer.dump_sequence",
        "Transformer.load_rows",
        "Transformer.set_pgresult",
    ),
    "psycopg.pq": (
        "PGconn.consume_input",
        "PGconn.enter_pipeline_mode",
        "PGconn.exit_pipeline_mode",
        "PGconn.flush",
        "PGconn.get_result",
        "PGconn.is_busy",
        "PGconn.pipeline_sync",
        "PGconn.send_prepare",
        "PGconn.send_query_params",
        "PGconn.send_query_prepared",
    ),
}


def check_internals() -> None:
    """
    Check that the installed libraries have the internals that the server uses.

    Raises Unavailable, which names what is missing and the remedy, so that the server does not fail at a later request.
    """
    missing = [f"{module}.{name}" for module, names in INTERNALS.items() for name in names if not _has(module, name)]
    if missing:
        libraries = sorted({name.partition(".")[0] for name in missing})
        installed = ", ".join(f"{library} {version(library)}" for library in libraries)
        raise Unavailable(
            f"the server does not work with {installed}: {', '.join(missing)} is missing; install the versions in"
            " constraints.txt of Stoker's source (make does)"
        )


def _has(module: str, name: str) -> bool:
    try:
        value: object = import_module(module)
    except ImportError:
        return False
    for part in name.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True
