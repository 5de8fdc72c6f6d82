"""Servers (Stoker's own), and what there is to know of the service itself."""

from __future__ import annotations

from stoker.http import health
from stoker.http.heat import audit, servers, site
from stoker.http.openapi.operations import Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    ASKED,
    COUNTED,
    FLAG,
    ID,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    by_name,
    closed,
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
from stoker.model.audit import Verdict
from stoker.model.server import Kind

_REVISION = record({"revision": TEXT})

_WHO = one_of("STACK", "PROJECT")
_NAMED = text(255, 1)
_LET_IN: Schema = {"anyOf": [closed(request({"stack": _NAMED})), closed(request({"project": _NAMED}))]}
#: As it is asked for; what is no cron expression and no time zone is refused besides.
_POLICY: Schema = {
    "anyOf": [
        {"type": "null"},
        _WHO,
        {**listed(_LET_IN), "maxItems": 100},
        closed(
            request(
                allow={"anyOf": [{"type": "null"}, _WHO, {**listed(_LET_IN), "maxItems": 100}]},
                groups=maybe({**listed(_NAMED), "maxItems": 100}),
                max_concurrent_runs=maybe({**WHOLE, "minimum": 1, "maximum": 1000}),
                maintenance_windows=maybe(
                    {
                        **listed(
                            closed(
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
            "hooks": listed(TEXT),
            "hostname": maybe(TEXT),
            "stack_id": maybe(TEXT),
            "resource_name": maybe(TEXT),
            "labels": by_name(TEXT),
            "policy": told(ref("DeploymentPolicy"), "What holds: its own, or else the site's"),
            "policy_source": one_of("server", "site"),
            "window": told(
                record({"open": FLAG, "changes_at": maybe(TIME)}), "Whether runs may begin now, and until or from when"
            ),
        }
    ),
    "DeploymentPolicy": record(
        {
            "allow": told(
                {"anyOf": [_WHO, listed(_LET_IN)]},
                "STACK: the stack it belongs to; PROJECT: anybody of its project; or who else is let in",
            ),
            "groups": told(maybe(listed(TEXT)), "Groups of the configs that may run; null: any"),
            "max_concurrent_runs": {**WHOLE, "minimum": 1},
            "maintenance_windows": listed(record({"cron": TEXT, "minutes": WHOLE, "timezone": TEXT})),
        }
    ),
    "AuditEntry": record(
        {
            "id": COUNTED,
            "time": TIME,
            "who": told(maybe(TEXT), "Name of the user"),
            "what": told(TEXT, "Such as run CREATE, or change policy"),
            "decision": one_of(*Verdict),
            "server_id": maybe(TEXT),
            "deployment_id": maybe(TEXT),
            "stack_id": maybe(TEXT),
            "reason": TEXT,
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
            summary="The servers of the project",
            query={"labels": told(ASKED, "Only those with all of these, like tier=web,zone=a")},
            answers=ok(under("servers", listed(ref("Server")))),
        ),
        servers.show: Operation(summary="One server", answers=ok(under("server", ref("Server"))), errors=(409,)),
        servers.create: Operation(
            summary="Enrol a server",
            body=request({"name": text(255, 1)}),
            answers=ok(record({"server": ref("Server"), "enrolment": ref("Enrolment")}), 201),
            errors=(409,),
        ),
        servers.change: Operation(
            summary="Change a server's labels and its policy",
            body=request(
                labels=told(by_name(maybe(text(63))), "Those that are null are taken away"),
                policy=told(_POLICY, "null: what the site says"),
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
                "marker": told({**COUNTED, "minimum": 1}, "The id of an entry: those before it"),
                "server": told(ASKED, "Only those about this one, by name or id"),
            },
            answers=ok(under("audit", listed(ref("AuditEntry")))),
        ),
    },
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
