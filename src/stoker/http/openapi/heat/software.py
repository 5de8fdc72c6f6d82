"""Software configs and deployments."""

from __future__ import annotations

from stoker.deployments.schema import TYPES
from stoker.http.heat import configs, deployments, logs, runs
from stoker.http.openapi.operations import Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    ANYTHING,
    ASKED,
    COUNTED,
    FLAG,
    ID,
    MAP,
    TEXT,
    TIME,
    WHOLE,
    WORD_FLAG,
    Schema,
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

_NAME = text(255)
#: How a result may come.
SIGNALS = ("AUTO", "CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "STOKER_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL")
_SAID = {
    "name": maybe(_NAME),
    "group": told(maybe(_NAME), "Which hook runs it"),
    "config": told(ANYTHING, "What the hook runs: mostly a text"),
    "inputs": maybe(
        listed(
            closed(
                request(
                    {"name": text(255, 1)},
                    type=maybe(one_of(*TYPES)),
                    description=maybe(TEXT),
                    default=ANYTHING,
                    replace_on_change=maybe(WORD_FLAG),
                    value=ANYTHING,
                )
            )
        )
    ),
    "outputs": maybe(
        listed(
            closed(
                request(
                    {"name": text(255, 1)},
                    type=maybe(one_of(*TYPES)),
                    description=maybe(TEXT),
                    error_output=maybe(WORD_FLAG),
                )
            )
        )
    ),
    "options": maybe(MAP),
}

SCHEMAS: dict[str, Schema] = {
    "ConfigInput": record(
        {"name": ID, "type": one_of(*TYPES)},
        description=TEXT,
        default=ANYTHING,
        replace_on_change=FLAG,
        value=ANYTHING,
    ),
    "ConfigOutput": record({"name": ID, "type": one_of(*TYPES), "error_output": FLAG}, description=TEXT),
    "SoftwareConfig": record(
        {
            "id": ID,
            "name": maybe(TEXT),
            "group": maybe(TEXT),
            "creation_time": TIME,
            "config": ANYTHING,
            "inputs": listed(ref("ConfigInput")),
            "outputs": listed(ref("ConfigOutput")),
            "options": MAP,
        }
    ),
    "SoftwareDeployment": record(
        {
            "id": ID,
            "server_id": ID,
            "config_id": told(ID, "The config that runs: with each run another one"),
            "input_values": MAP,
            "output_values": MAP,
            "action": maybe(TEXT),
            "status": maybe(TEXT),
            "status_reason": maybe(TEXT),
            "creation_time": TIME,
        },
        updated_time=TIME,
    ),
    "Run": record(
        {
            "number": told(WHOLE, "Counts the runs of its deployment"),
            "config_id": ID,
            "action": maybe(TEXT),
            "state": told(TEXT, "HELD, WAITING, DELIVERED, RUNNING or what its agent says, SILENT, CANCELLING, DONE"),
            "silent_seconds": told(maybe(WHOLE), "How long its agent has said nothing, once that is too long"),
            "percent": maybe(WHOLE),
            "message": maybe(TEXT),
            "heard_time": maybe(TIME),
            "queued_time": TIME,
            "delivered_time": maybe(TIME),
            "channel": told(maybe(TEXT), "The transport by which it was delivered"),
            "start_time": maybe(TIME),
            "end_time": maybe(TIME),
            "status": maybe(TEXT),
            "status_code": maybe(TEXT),
            "status_reason": maybe(TEXT),
            "asked_by": told(maybe(TEXT), "Null: a stack's action did"),
            "input_values": told(MAP, "Without the values of secret ones"),
            "output_values": told(MAP, "Without what the log has"),
            "stdout_bytes": COUNTED,
            "stderr_bytes": COUNTED,
        }
    ),
    "DeploymentLogs": record(
        {
            "logs": listed(
                record(
                    {
                        "seq": COUNTED,
                        "config_id": ID,
                        "stream": TEXT,
                        "offset": told(COUNTED, "In bytes; between two chunks of a stream some may have been cut"),
                        "size": told(WHOLE, "In bytes"),
                        "data": TEXT,
                        "time": TIME,
                    }
                )
            ),
            "next": told(COUNTED, "What to give as after next time"),
            "status": maybe(TEXT),
            "status_reason": maybe(TEXT),
            "progress": maybe(
                record({"state": TEXT, "percent": maybe(WHOLE), "message": maybe(TEXT), "time": TIME}),
            ),
        }
    ),
}
_CONFIG = ok(under("software_config", ref("SoftwareConfig")))
_DEPLOYMENT = ok(under("software_deployment", ref("SoftwareDeployment")))
_VALUES = {
    "input_values": maybe(MAP),
    "action": told(maybe(_NAME), "Which of a server's life it is for, such as CREATE"),
    "status": maybe(_NAME),
    "status_reason": maybe(text(65535)),
}

CONFIGS = Noun(
    "Software configs",
    {
        configs.index: Operation(
            summary="The configs of the project, newest first",
            query={"limit": WHOLE, "marker": ASKED, "global_tenant": told(one_of("false"), "Not supported")},
            answers=ok(
                under(
                    "software_configs",
                    listed(
                        record({"id": ID, "name": maybe(TEXT), "group": maybe(TEXT), "creation_time": TIME}),
                    ),
                )
            ),
        ),
        configs.create: Operation(
            summary="Make a config",
            body=request(**_SAID),
            example={"name": "hello", "group": "script", "config": "#!/bin/sh\n", "outputs": [{"name": "result"}]},
            answers=_CONFIG,
        ),
        configs.show: Operation(summary="One config", answers=_CONFIG),
        configs.delete: Operation(summary="Delete a config that no deployment uses", answers=empty(), errors=(409,)),
    },
    SCHEMAS,
)

DEPLOYMENTS = Noun(
    "Software deployments",
    {
        deployments.index: Operation(
            summary="The deployments of the project, oldest first",
            query={"server_id": told(ASKED, "Only those of this server")},
            answers=ok(under("software_deployments", listed(ref("SoftwareDeployment")))),
        ),
        deployments.metadata: Operation(
            summary="What a server's agent has to run: the configs of all its deployments",
            answers=ok(under("metadata", listed(ref("SoftwareConfig")))),
        ),
        deployments.create: Operation(
            summary="Bring a config to a server",
            body=request(
                {"config_id": ID, "server_id": text(36, 1)},
                **_VALUES,
                stack_user_project_id=maybe(text(64)),
                signal_transport=told(
                    one_of(*SIGNALS),
                    "Stoker's own: the config given is a source, from which the one to run is derived",
                ),
                name=told(maybe(_NAME), "With signal_transport: of the derived config"),
                timeout=told(
                    {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 2**31},
                    "With signal_transport: seconds that a run may take",
                ),
            ),
            answers=_DEPLOYMENT,
        ),
        deployments.show: Operation(summary="One deployment", answers=_DEPLOYMENT),
        deployments.update: Operation(
            summary="Change a deployment, or report what came of its run",
            body=request(**_VALUES, config_id=maybe(ID), output_values=maybe(MAP)),
            answers=_DEPLOYMENT,
        ),
        deployments.delete: Operation(summary="Withdraw a deployment", answers=empty()),
        runs.index: Operation(
            summary="The runs of a deployment, newest first (Stoker's own)",
            answers=ok(under("runs", listed(ref("Run")))),
        ),
        runs.cancel: Operation(
            summary="End the run under way: its agent is told to stop it (Stoker's own)",
            body=request(force=told(maybe(WORD_FLAG), "Do not wait for what its agent says")),
            body_needed=False,
            answers=ok(under("software_deployment", ref("SoftwareDeployment")), 202),
            errors=(409,),
        ),
        runs.retry: Operation(
            summary="Run again what failed; a stack's own by an update of the stack with its template (Stoker's own)",
            body=request(),
            body_needed=False,
            answers=ok(under("software_deployment", ref("SoftwareDeployment")), 202),
            errors=(409,),
        ),
        runs.signal: Operation(
            summary="Report what came of a deployment's run (Stoker's own)",
            query={
                "token": told(ASKED, "In place of X-Auth-Token: of the URL that the deployment's config brings"),
                "run": told(ASKED, "Its number: a result of an earlier run changes nothing"),
            },
            body=told(request(), "deploy_stdout, deploy_stderr, deploy_status_code, and the config's outputs"),
            body_needed=False,
            answers=ok(under("status", maybe(TEXT))),
        ),
        logs.follow: Operation(
            # With Accept: text/event-stream the same comes as events: log, progress, status, and at last end.
            summary="The live output of a deployment's runs, also as server-sent events (Stoker's own)",
            query={
                "after": told(COUNTED, "What came after this one"),
                "wait": told({**WHOLE, "maximum": 60}, "Seconds to wait for the first, while the run is under way"),
            },
            answers=ok(ref("DeploymentLogs")),
        ),
    },
)
