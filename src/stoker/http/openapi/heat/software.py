"""Software configs and deployments."""

from __future__ import annotations

from stoker.deployments.schema import TYPES
from stoker.http.heat import configs, deployments, logs, runs
from stoker.http.openapi.operations import Noun, Operation, empty, ok
from stoker.http.openapi.schemas import (
    ANYTHING,
    COUNTED,
    FLAG,
    ID,
    MAP,
    REQUESTED,
    TEXT,
    TIME,
    WHOLE,
    WORD_FLAG,
    Schema,
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

_NAME = text(255)
#: The signal transports of a deployment.
SIGNALS = ("AUTO", "CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "STOKER_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL")
_SAID = {
    "name": maybe(_NAME),
    "group": with_description(maybe(_NAME), "Which hook runs it"),
    "config": with_description(ANYTHING, "What the hook runs: mostly a text"),
    "inputs": maybe(
        list_of(
            without_extras(
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
        list_of(
            without_extras(
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
            "inputs": list_of(ref("ConfigInput")),
            "outputs": list_of(ref("ConfigOutput")),
            "options": MAP,
        }
    ),
    "SoftwareDeployment": record(
        {
            "id": ID,
            "server_id": ID,
            "config_id": with_description(ID, "The config that runs: with each run another one"),
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
            "number": with_description(WHOLE, "Counts the runs of its deployment"),
            "config_id": ID,
            "action": maybe(TEXT),
            "state": with_description(
                TEXT, "PENDING_WINDOW, QUEUED, DELIVERED, RUNNING, UNRESPONSIVE, CANCELLING, DONE"
            ),
            "unresponsive_seconds": with_description(
                maybe(WHOLE), "How long its agent has said nothing, once that is too long"
            ),
            "percent": maybe(WHOLE),
            "message": maybe(TEXT),
            "last_heartbeat": maybe(TIME),
            "queued_time": TIME,
            "delivered_time": maybe(TIME),
            "channel": with_description(maybe(TEXT), "The transport by which it was delivered"),
            "start_time": maybe(TIME),
            "end_time": maybe(TIME),
            "status": maybe(TEXT),
            "status_code": maybe(TEXT),
            "status_reason": maybe(TEXT),
            "requested_by": with_description(maybe(TEXT), "Null: a stack's action did"),
            "input_values": with_description(MAP, "Without the values of secret ones"),
            "output_values": with_description(MAP, "Without what the log has"),
            "stdout_bytes": COUNTED,
            "stderr_bytes": COUNTED,
        }
    ),
    "DeploymentLogs": record(
        {
            "logs": list_of(
                record(
                    {
                        "seq": COUNTED,
                        "config_id": ID,
                        "stream": TEXT,
                        "offset": with_description(
                            COUNTED, "In bytes; between two chunks of a stream some may have been cut"
                        ),
                        "size": with_description(WHOLE, "In bytes"),
                        "data": TEXT,
                        "time": TIME,
                    }
                )
            ),
            "next": with_description(COUNTED, "What to give as after next time"),
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
    "action": with_description(maybe(_NAME), "Which of a server's life it is for, such as CREATE"),
    "status": maybe(_NAME),
    "status_reason": maybe(text(65535)),
}

CONFIGS = Noun(
    "Software configs",
    {
        configs.index: Operation(
            summary="The configs of the project, newest first",
            query={
                "limit": WHOLE,
                "marker": REQUESTED,
                "global_tenant": with_description(one_of("false"), "Not supported"),
                "derived": with_description(one_of("true", "false"), "false: without the copies that deployments run"),
            },
            answers=ok(
                under(
                    "software_configs",
                    list_of(
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
            query={
                "server_id": with_description(REQUESTED, "Only those of this server"),
                "limit": WHOLE,
                "marker": REQUESTED,
            },
            answers=ok(under("software_deployments", list_of(ref("SoftwareDeployment")))),
        ),
        deployments.metadata: Operation(
            summary="What a server's agent has to run: the configs of all its deployments",
            answers=ok(under("metadata", list_of(ref("SoftwareConfig")))),
        ),
        deployments.create: Operation(
            summary="Bring a config to a server",
            body=request(
                {"config_id": ID, "server_id": text(36, 1)},
                **_VALUES,
                stack_user_project_id=maybe(text(64)),
                signal_transport=with_description(
                    one_of(*SIGNALS),
                    "Stoker's own: the config given is a source, from which the one to run is derived",
                ),
                name=with_description(maybe(_NAME), "With signal_transport: of the derived config"),
                timeout=with_description(
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
            answers=ok(under("runs", list_of(ref("Run")))),
        ),
        runs.cancel: Operation(
            summary="End the run under way: its agent is told to stop it (Stoker's own)",
            body=request(force=with_description(maybe(WORD_FLAG), "Do not wait for what its agent says")),
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
                "token": with_description(
                    REQUESTED, "In place of X-Auth-Token: of the URL that the deployment's config brings"
                ),
                "run": with_description(REQUESTED, "Its number: a result of an earlier run changes nothing"),
            },
            body=with_description(
                request(), "deploy_stdout, deploy_stderr, deploy_status_code, and the config's outputs"
            ),
            body_needed=False,
            answers=ok(under("status", maybe(TEXT))),
        ),
        logs.follow: Operation(
            # With Accept: text/event-stream, the response is a stream of the events log, progress, status and finally
            # end.
            summary="The live output of a deployment's runs, also as server-sent events (Stoker's own)",
            query={
                "after": with_description(COUNTED, "What came after this one"),
                "wait": with_description(
                    {**WHOLE, "maximum": 60}, "Seconds to wait for the first, while the run is under way"
                ),
            },
            answers=ok(ref("DeploymentLogs")),
        ),
    },
)
