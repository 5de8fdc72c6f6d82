"""/agent/v1/runs/{config_id} and checks/{deployment_id}: an agent reports runs and checks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from stoker.deployments import drift, log_storage, runs
from stoker.deployments.drift import CheckReport
from stoker.deployments.reports import Report
from stoker.deployments.signals import RUN
from stoker.http.contracts import operation
from stoker.http.fields import LAST, Body, Count, LongText, Query, RequiredShortText, described
from stoker.http.heat.runs import RunChange
from stoker.http.request import RequestContext, Response
from stoker.http.signals import log_unknown
from stoker.model.check import CheckState
from stoker.store.tx import Tx

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
    report = Report(request.server, config_id, {name: value for name, value in body.items() if name != RUN})
    with log_unknown(None, config_id):
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


#: ``deployments.signals.read_changes`` checks them.
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
