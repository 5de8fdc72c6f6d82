"""Servers (Stoker's own), and information about the service."""

from __future__ import annotations

from stoker.http import health
from stoker.http.heat import audit, servers, site
from stoker.http.openapi.operations import Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    COUNTED,
    FLAG,
    ID,
    REQUESTED,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    by_name,
    list_of,
    maybe,
    one_of,
    record,
    ref,
    request,
    text,
    under,
    with_description,
    without_extras,
)
from stoker.model.audit import Outcome
from stoker.model.server import Kind

_REVISION = record({"revision": TEXT})

_WHO = one_of("STACK", "PROJECT")
_NAMED = text(255, 1)
_LET_IN: Schema = {"anyOf": [without_extras(request({"stack": _NAMED})), without_extras(request({"project": _NAMED}))]}
#: As clients send it; the server also checks cron expressions and time zones.
_POLICY: Schema = {
    "anyOf": [
        {"type": "null"},
        _WHO,
        {**list_of(_LET_IN), "maxItems": 100},
        without_extras(
            request(
                allow={"anyOf": [{"type": "null"}, _WHO, {**list_of(_LET_IN), "maxItems": 100}]},
                groups=maybe({**list_of(_NAMED), "maxItems": 100}),
                max_concurrent_runs=maybe({**WHOLE, "minimum": 1, "maximum": 1000}),
                maintenance_windows=maybe(
                    {
                        **list_of(
                            without_extras(
                                request(
                                    {
                                        "cron": one_of("0 2 * * *", "30 22 * * sun", "*/5 1-3 1,15 * *"),
                                        "minutes": {**WHOLE, "minimum": 1, "maximum": 10_080},
                                    },
                                    timezone=maybe(one_of("UTC", "Europe/Vienna")),
                                )
                            )
                        ),
                        "maxItems": 20,
                    }
                ),
            )
        ),
    ]
}

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
            "hooks": list_of(TEXT),
            "hostname": maybe(TEXT),
            "stack_id": maybe(TEXT),
            "resource_name": maybe(TEXT),
            "labels": by_name(TEXT),
            "policy": with_description(ref("DeploymentPolicy"), "What holds: its own, or else the site's"),
            "policy_source": one_of("server", "site"),
            "window": with_description(
                record({"open": FLAG, "changes_at": maybe(TIME)}), "Whether runs may begin now, and until or from when"
            ),
        }
    ),
    "DeploymentPolicy": record(
        {
            "allow": with_description(
                {"anyOf": [_WHO, list_of(_LET_IN)]},
                "STACK: the stack it belongs to; PROJECT: anybody of its project; or who else is let in",
            ),
            "groups": with_description(maybe(list_of(TEXT)), "Groups of the configs that may run; null: any"),
            "max_concurrent_runs": {**WHOLE, "minimum": 1},
            "maintenance_windows": list_of(record({"cron": TEXT, "minutes": WHOLE, "timezone": TEXT})),
        }
    ),
    "AuditEntry": record(
        {
            "id": COUNTED,
            "time": TIME,
            "actor": with_description(maybe(TEXT), "Name of the user"),
            "action": with_description(TEXT, "Such as run CREATE, or change policy"),
            "outcome": one_of(*Outcome),
            "server_id": maybe(TEXT),
            "deployment_id": maybe(TEXT),
            "stack_id": maybe(TEXT),
            "reason": TEXT,
        }
    ),
    "Enrollment": record(
        {
            "token": with_description(TEXT, "Good for one agent"),
            "expires_at": TIME,
            "command": with_description(TEXT, "What installs the agent on the server"),
            "url": with_description(TEXT, "Where the agent reaches Stoker"),
            "warning": with_description(maybe(TEXT), "Why other machines cannot reach that, if they cannot"),
        }
    ),
}

SERVERS = Noun(
    "Servers",
    {
        servers.index: Operation(
            summary="The servers of the project",
            query={"labels": with_description(REQUESTED, "Only those with all of these, like tier=web,zone=a")},
            answers=ok(under("servers", list_of(ref("Server")))),
        ),
        servers.show: Operation(summary="One server", answers=ok(under("server", ref("Server"))), errors=(409,)),
        servers.create: Operation(
            summary="Enroll a server",
            body=request({"name": text(255, 1)}),
            answers=ok(record({"server": ref("Server"), "enrollment": ref("Enrollment")}), 201),
            errors=(409,),
        ),
        servers.change: Operation(
            summary="Change a server's labels and its policy",
            body=request(
                labels=with_description(by_name(maybe(text(63))), "Those that are null are taken away"),
                policy=with_description(_POLICY, "null: what the site says"),
            ),
            example={"labels": {"tier": "web"}, "policy": {"allow": "STACK", "groups": ["script"]}},
            answers=ok(under("server", ref("Server"))),
            errors=(409,),
        ),
        servers.delete: Operation(summary="Remove a server", answers=empty(), errors=(409,)),
    },
    SCHEMAS,
)

AUDIT = Noun(
    "Audit log",
    {
        audit.index: Operation(
            summary="What policies decided and who changed them, newest first",
            query={
                "limit": {**WHOLE, "minimum": 1},
                "marker": with_description({**COUNTED, "minimum": 1}, "The id of an entry: those before it"),
                "server": with_description(REQUESTED, "Only those about this one, by name or id"),
            },
            answers=ok(under("audit", list_of(ref("AuditEntry")))),
        ),
    },
)

_VERSIONS = ok(
    under(
        "versions",
        list_of(record({"id": TEXT, "status": TEXT, "links": list_of(ref("Link"))})),
    ),
    300,
)
SITE = Noun(
    "The service",
    {
        health.health: Operation(
            summary="Whether the service and its database are well; 503 names the checks that fail",
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
                    list_of(
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
