"""/agent/v1/runs/{config_id}: an agent reports the progress, output and result of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from stoker.deployments import log_storage, runs
from stoker.deployments.reports import Report
from stoker.deployments.signals import RUN
from stoker.http.contracts import operation
from stoker.http.fields import Body, Count, Flag, LongText, Query, integer
from stoker.http.request import RequestContext, Response
from stoker.http.signals import log_unknown

if TYPE_CHECKING:
    Percent = int
    Offset = int
else:
    Percent = integer("Percent", 0, 100)
    #: In bytes of an output stream, so that the end of a chunk fits into a database integer.
    Offset = integer("Offset", 0, 2**62)


class ProgressReport(Body):
    """With ``beat``, the report is only a sign of life."""

    beat: Flag | None = None
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
def progress(request: RequestContext, body: ProgressReport) -> Response:
    """Record a heartbeat, or the percentage and message of a run."""
    config_id = request.path["config_id"]
    if body.beat:
        request.app.store.write(lambda tx: runs.heartbeat(tx, server_id=request.server, config_id=config_id))
        return Response(204)
    if body.state == "WAITING":
        message = body.message or ""
        request.app.store.write(
            lambda tx: runs.record_wait(tx, server_id=request.server, config_id=config_id, reason=message)
        )
        return Response(204)
    request.app.store.write(
        lambda tx: runs.progress(
            tx, server_id=request.server, config_id=config_id, percent=body.percent, message=body.message
        )
    )
    return Response(204)


@operation(200, {"offset": Count}, request_media_type="application/octet-stream")
def log(request: RequestContext, query: ChunkQuery) -> Response:
    """Append a chunk of a run's output, and return the offset up to which Stoker has the output."""
    end = request.app.store.write(
        lambda tx: log_storage.append_log(
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
    )
    return Response(200, {"offset": end})
