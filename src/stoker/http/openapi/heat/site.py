"""Servers (Stoker's own), and what there is to know of the service itself."""

from __future__ import annotations

from stoker.http import health
from stoker.http.heat import servers, site
from stoker.http.openapi.operations import Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    ID,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    listed,
    maybe,
    one_of,
    record,
    ref,
    request,
    text,
    told,
    under,
)
from stoker.model.server import Kind

_REVISION = record({"revision": TEXT})

SCHEMAS: dict[str, Schema] = {
    "Server": record(
        {
            "id": ID,
            "name": TEXT,
            "kind": one_of(*Kind),
            "status": one_of("ONLINE", "OFFLINE", "ENROLLING", "NEVER_SEEN"),
            "last_seen": maybe(TIME),
            "created_at": TIME,
            "agent_version": maybe(TEXT),
            "hooks": listed(TEXT),
            "hostname": maybe(TEXT),
            "stack_id": maybe(TEXT),
            "resource_name": maybe(TEXT),
        }
    ),
    "Enrolment": record(
        {
            "token": told(TEXT, "Good for one agent"),
            "expires_at": TIME,
            "command": told(TEXT, "What installs the agent on the server"),
        }
    ),
}

SERVERS = Noun(
    "Servers",
    {
        servers.index: Operation(
            summary="The servers of the project", answers=ok(under("servers", listed(ref("Server"))))
        ),
        servers.show: Operation(summary="One server", answers=ok(under("server", ref("Server"))), errors=(409,)),
        servers.create: Operation(
            summary="Enrol a server",
            body=request({"name": text(255, 1)}),
            answers=ok(record({"server": ref("Server"), "enrolment": ref("Enrolment")}), 201),
            errors=(409,),
        ),
        servers.delete: Operation(summary="Remove a server", answers=empty(), errors=(409,)),
    },
    SCHEMAS,
)

_VERSIONS = ok(
    under(
        "versions",
        listed(record({"id": TEXT, "status": TEXT, "links": listed(ref("Link"))})),
    ),
    300,
)
SITE = Noun(
    "The service",
    {
        health.health: Operation(
            summary="Whether the service and its database are well",
            answers=ok(record({"status": one_of("ok"), "version": TEXT})),
        ),
        health.versions: Operation(summary="The versions of the API", answers=_VERSIONS),
        site.build_info: Operation(
            summary="Which Stoker this is", answers=ok(record({"api": _REVISION, "engine": _REVISION}))
        ),
        site.services: Operation(
            summary="The processes that serve, as Heat lists its engines",
            answers=ok(
                under(
                    "services",
                    listed(
                        record(
                            {
                                "id": ID,
                                "binary": TEXT,
                                "engine_id": ID,
                                "host": TEXT,
                                "hostname": TEXT,
                                "topic": TEXT,
                                "report_interval": WHOLE,
                                "created_at": TEXT,
                                "updated_at": TEXT,
                                "deleted_at": maybe(TEXT),
                                "status": one_of("up", "down"),
                            }
                        )
                    ),
                )
            ),
        ),
    },
)
