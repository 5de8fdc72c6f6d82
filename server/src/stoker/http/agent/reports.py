"""/agent/v1/runs, checks, facts and refusals: what an agent reports about its runs, its machine and itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from stoker.deployments import drift, log_storage, runs
from stoker.deployments.drift import CheckReport
from stoker.deployments.run_end import Report
from stoker.http import audit_trail
from stoker.http.contracts import (
    LAST,
    NO_NUL,
    Body,
    Count,
    LongText,
    Name,
    Query,
    RequiredShortText,
    convert,
    described,
    operation,
)
from stoker.http.heat.runs import RunChange
from stoker.http.request import RequestContext, Response
from stoker.model.audit import Outcome
from stoker.model.deployment import CheckState
from stoker.model.errors import Unauthorized
from stoker.model.server import CUSTOM, LABELS
from stoker.servers import presence
from stoker.store import servers
from stoker.store.tx import Tx
from stoker.types import publishing

_Names = Annotated[list[Name], Meta(max_length=256)]


class OsFacts(Body, omit_defaults=True):
    """The operating system; ``family`` is debian, redhat, suse, arch, or its id."""

    id: Name | None = None
    family: Name | None = None
    name: Name | None = None
    version: Name | None = None
    codename: Name | None = None


class CloudFacts(Body, omit_defaults=True):
    """The machine as its cloud knows it."""

    id: Name | None = None
    name: Name | None = None
    region: Name | None = None
    zone: Name | None = None


class Facts(Body, omit_defaults=True):
    """
    Facts of a machine, at most 32 KB.

    ``custom`` are the facts of the site. Members that are not listed here are added to ``custom``, except ``labels``,
    which is ignored: the labels among the facts of a server are those that it has at Stoker.
    """

    os: OsFacts | None = None
    kernel: Name | None = None
    arch: Name | None = None
    cpus: Count | None = None
    memory_mb: Count | None = None
    hostname: Name | None = None
    fqdn: Name | None = None
    address: Name | None = None
    networks: Annotated[dict[str, _Names], Meta(max_length=256)] | None = None
    cloud: CloudFacts | None = None
    virtualization: Name | None = None
    container: Name | None = None
    python: Name | None = None
    agent: Name | None = None
    hooks: _Names | None = None
    tools: Annotated[dict[str, Name], Meta(max_length=256)] | None = None
    #: Why the agent can start no run; absent if it can.
    problem: Annotated[str, Meta(max_length=2000)] | None = None
    custom: dict[str, Any] | None = None


@operation(204, example={"os": {"id": "debian", "family": "debian", "version": "12"}, "memory_mb": 7941})
def put_facts(request: RequestContext, tx: Tx, body: Annotated[Any, described(Facts)]) -> None:
    """Replace the facts of the server."""
    facts: Facts = convert(body, Facts, "the facts")
    unknown = {name: value for name, value in body.items() if name not in Facts.__struct_fields__ and name != LABELS}
    values: dict[str, Any] = msgspec.to_builtins(facts)
    if unknown:
        values[CUSTOM] = {**(values.get(CUSTOM) or {}), **unknown}
    presence.store_facts(tx, request.server, values)


class DocumentRefusal(Body):
    """``source`` is the section of the agent's configuration for the service that delivered the document."""

    source: Annotated[str, Meta(max_length=32, pattern=NO_NUL)] | None = None
    reason: Annotated[str, Meta(max_length=500, pattern=NO_NUL)] | None = None


@operation(204)
def refuse_document(request: RequestContext, tx: Tx, body: DocumentRefusal) -> None:
    """Record the refusal in the audit log, and publish the document again to replace the refused one."""
    server = servers.find(tx, request.server)
    if server is None:
        raise Unauthorized("This key is not valid, or has been revoked.")
    action, reason = f"take a document from {body.source or '?'}", f"The agent refused a document: {body.reason or ''}"
    audit_trail.record_agent(tx, server, action, reason, Outcome.REFUSED)
    publishing.publish_again(tx, request.app.engine, server.id)


Percent = Annotated[int, Meta(ge=0, le=100)]
#: In bytes of an output stream, so that the end of a chunk fits into a database integer.
Offset = Annotated[int, Meta(ge=0, le=2**62)]


class ProgressReport(Body):
    """With ``beat``, the report is only a sign of life."""

    beat: bool | None = None
    percent: Percent | None = None
    message: LongText | None = None
    #: WAITING: the run cannot start now, for the reason in ``message``. Stoker sets all other states of a run.
    state: Literal["RUNNING", "WAITING"] | None = None


class ChunkQuery(Query):
    """With ``gap``, output before the chunk is lost. With ``again``, the agent repeats output because it had gaps."""

    stream: Literal["stdout", "stderr"]
    offset: Offset = 0
    gap: Literal["0", "1"] = "0"
    again: Literal["0", "1"] = "0"


@operation(200, {"status": str})
async def signal(request: RequestContext, body: dict[str, Any]) -> Response:
    """Apply the result of a run, and return the status of its deployment."""
    config_id = request.path["config_id"]
    report = Report(request.server, config_id, {name: value for name, value in body.items() if name != runs.RUN})
    with runs.log_unknown(None, config_id):
        status = await request.app.agent_batches.reports.submit(report)
    return Response(200, {"status": status or ""})


@operation(204)
def progress(request: RequestContext, tx: Tx, body: ProgressReport) -> None:
    """Record a heartbeat, or the percentage and message of a run."""
    server_id, config_id = request.server, request.path["config_id"]
    if body.beat:
        runs.heartbeat(tx, server_id=server_id, config_id=config_id)
    elif body.state == "WAITING":
        runs.record_wait(tx, server_id=server_id, config_id=config_id, reason=body.message or "")
    else:
        runs.progress(tx, server_id=server_id, config_id=config_id, percent=body.percent, message=body.message)


@operation(200, {"offset": Count}, request_media_type="application/octet-stream")
def log(request: RequestContext, tx: Tx, query: ChunkQuery) -> dict[str, int]:
    """Append a chunk of a run's output, and return the offset up to which Stoker has the output."""
    end = log_storage.append_log(
        tx,
        server_id=request.server,
        config_id=request.path["config_id"],
        stream=query.stream,
        offset=query.offset,
        data=request.body,
        gap=query.gap == "1",
        again=query.again == "1",
        most=request.app.settings.max_log_bytes,
    )
    return {"offset": end}


#: ``deployments.runs.read_changes`` checks them.
ReportedChanges = Annotated[Any, described(list[RunChange], "The differences as the hook reported them")]


class CheckResult(Body):
    """``config_id`` is the derived config that was checked, ``requested`` the request that the report answers."""

    config_id: RequiredShortText
    state: CheckState
    reason: LongText = ""
    changes: ReportedChanges | None = None
    requested: Annotated[int, Meta(ge=0, le=LAST)] | None = None


@operation(204)
def check(request: RequestContext, tx: Tx, body: CheckResult) -> None:
    """Record the result of a check. A report about an earlier run of the deployment changes nothing."""
    result = CheckReport(
        deployment_id=request.path["deployment_id"],
        config_id=body.config_id,
        state=body.state,
        reason=body.reason,
        changes=body.changes,
        requested=body.requested,
    )
    drift.apply_report(tx, request.app.engine.env, request.server, result)
