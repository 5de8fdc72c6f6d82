"""/v1/{project}/software_deployments/{id}/logs: the live output of a deployment's runs (Stoker's own)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated

from msgspec import Meta, field

from stoker.http.contracts import Answer, Count, Id, Position, Query, Time, fill, operation
from stoker.http.event_stream import Batch, Event, Reader, format_cursor, parse_number
from stoker.http.request import RequestContext, Response
from stoker.model.deployment import Run, RunState
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Status
from stoker.store import deployments, runs
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx


class OutputChunk(Answer):
    """
    A chunk of output. ``offset`` and ``size`` are in bytes.

    A gap between a chunk's end and the next offset of its stream means that output was cut.
    """

    seq: Count
    config_id: Id
    stream: str
    offset: Count
    size: Count
    data: str
    at: Time = field(name="time")


class RunProgress(Answer):
    """The progress that the agent last reported. The state is UNRESPONSIVE if the report is too old."""

    state: RunState
    percent: int | None
    message: str | None
    last_heartbeat_at: Time = field(name="time")


class DeploymentLogs(Answer):
    logs: list[OutputChunk]
    next: Annotated[Count, Meta(description="The parameter `after` of the next request")]
    cursor: Annotated[str, Meta(description="The position in the stream of the deployment's events")]
    status: str | None
    status_reason: str | None
    progress: RunProgress | None
    previous: Annotated[
        Count | None, Meta(description="The parameter `before` of the request for the output before; null: none")
    ]


class LogQuery(Query):
    after: Annotated[Position, Meta(description="The position after which the output begins")] = 0
    before: Annotated[
        Position | None, Meta(description="Only the last output before this position, in place of the first after one")
    ] = None
    run: Annotated[str | None, Meta(description="The config of a single run")] = None


class StreamQuery(Query):
    run: Annotated[str | None, Meta(description="The config of a run; by default, the newest run")] = None


@operation(200, DeploymentLogs)
def index(request: RequestContext, tx: Tx, query: LogQuery) -> DeploymentLogs:
    """
    Return the output of a deployment's runs.

    With `before`, read backwards from any later position, such as 2147483647, and then from `previous`. The stream of
    the deployment's events follows the output.
    """
    deployment = deployments.get(tx, request.path["deployment_id"], request.project)
    page = runs.page_output(tx, deployment.id, query.after, before=query.before, run=query.run)
    position = page.chunks[-1].seq if page.chunks else query.after
    return DeploymentLogs(
        logs=[fill(OutputChunk, chunk) for chunk in page.chunks],
        next=position,
        cursor=format_cursor({f"deployment:{deployment.id}": str(position)}),
        status=deployment.status,
        status_reason=deployment.status_reason,
        progress=_progress(deployment.run, tx.now),
        previous=page.chunks[0].seq if query.before is not None and page.more else None,
    )


@operation(200, bytes, media_type="application/octet-stream")
def show_stream(request: RequestContext, tx: Tx, query: StreamQuery) -> Response:
    """Return the stored bytes of `stdout` or `stderr` of a run, with a note in place of bytes that are not stored."""
    deployment = deployments.get(tx, request.path["deployment_id"], request.project)
    stream = request.path["stream"]
    if stream not in runs.STREAMS:
        raise EntityNotFound.of("Stream", stream)
    content = runs.read_output(tx, deployment.id, query.run or deployment.config_id, stream)
    return Response(200, content, media_type="application/octet-stream")


class DeploymentReader(Reader):
    """
    The position of a stream among the events of a deployment: ``log``, ``progress`` and ``status``.

    A position is the number of the last chunk of output that was sent.
    """

    def __init__(self, id: str, project: str, after: str, kinds: frozenset[str] = frozenset()) -> None:
        super().__init__(kinds or ("log", "progress", "status"), (deployment_topic(id),))
        self._id, self._project = id, project
        self.is_repeatable = "log" not in self._kinds
        self._after = parse_number(after) or 0

    def read(self, tx: Tx, _notified: Collection[str] | None = None) -> Batch:
        """
        Return the next events.

        ``log`` for each chunk, ``progress`` and ``status`` when they change, and ``end`` when the run is over. After a
        forced cancellation, the agent may still send output, or never, because its server is lost.
        """
        deployment, page = deployments.get(tx, self._id, self._project), runs.OutputPage([], more=False)
        if "log" in self._kinds:
            page = runs.page_output(tx, deployment.id, self._after)
        progress = _progress(deployment.run, tx.now)
        events = [Event("log", fill(OutputChunk, chunk), str(chunk.seq)) for chunk in page.chunks]
        self._after = page.chunks[-1].seq if page.chunks else self._after
        if progress is not None:
            events += self.changes("progress", progress)
        status = {name: getattr(deployment, name) for name in ("status", "status_reason", "changed", "changed_items")}
        events += self.changes("status", status)
        over = not page.more and deployment.status != Status.IN_PROGRESS
        return Batch([*events, Event("end", status)] if over else events, over, page.more)


def _progress(run: Run | None, now: datetime) -> RunProgress | None:
    if run is None or run.last_heartbeat_at is None:
        return None
    return fill(RunProgress, run, state=run.state_at(now))
