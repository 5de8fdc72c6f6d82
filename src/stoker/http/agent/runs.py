"""/agent/v1/runs/{config_id}: an agent reports the progress, output and result of a run."""

from __future__ import annotations

from stoker.deployments import log_storage, runs
from stoker.deployments.signals import RUN
from stoker.http import params
from stoker.http.request_context import RequestContext, Response
from stoker.model.deployment import RunState
from stoker.model.errors import Invalid
from stoker.stacks import signals
from stoker.store.tx import Tx

#: The maximum offset in an output stream, in bytes, so that the end of a chunk fits into a database integer.
_FARTHEST = 2**62


def signal(request: RequestContext) -> Response:
    """Apply the result of a run, and return the status of its deployment."""
    values = params.body(request)
    config_id = request.path["config_id"]

    def do(tx: Tx) -> str | None:
        run = signals.find_run(tx, request.server, config_id)
        return signals.deliver(tx, request.app.engine, run, {**values, RUN: config_id})

    return Response(200, {"status": request.app.store.write(do) or ""})


def progress(request: RequestContext) -> Response:
    """Record a heartbeat, or the percentage and message of a run. Raises Invalid."""
    body = params.body(request)
    config_id = request.path["config_id"]
    if params.flag(body.get("beat"), "beat"):
        request.app.store.write(lambda tx: runs.heartbeat(tx, server_id=request.server, config_id=config_id))
        return Response(204)
    percent = params.whole(body.get("percent"), "percent")
    if percent is not None and percent > 100:
        raise Invalid(f"percent must be from 0 to 100, not {percent}")
    message = params.text(body.get("message"), "message", 65535)
    state = params.text(body.get("state"), "state", 64)
    if state not in (None, RunState.RUNNING):
        raise Invalid(f"state must be {RunState.RUNNING}: Stoker sets all other states of a run")
    request.app.store.write(
        lambda tx: runs.progress(
            tx,
            server_id=request.server,
            config_id=config_id,
            percent=percent,
            message=message,
        )
    )
    return Response(204)


def log(request: RequestContext) -> Response:
    """Append a chunk of a run's output. Return the offset up to which Stoker has the output."""
    offset = params.whole(request.query.get("offset"), "offset", most=_FARTHEST) or 0
    end = request.app.store.write(
        lambda tx: log_storage.append_log(
            tx,
            server_id=request.server,
            config_id=request.path["config_id"],
            stream=request.query.get("stream", ""),
            offset=offset,
            data=request.body,
            gap=request.query.get("gap") == "1",
            again=request.query.get("again") == "1",
            most=request.app.settings.max_log_bytes,
        )
    )
    return Response(200, {"offset": end})
