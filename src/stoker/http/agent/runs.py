"""/agent/v1/runs/{config_id}: what an agent says of a run."""

from __future__ import annotations

from stoker.deployments import output, runs
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.model.errors import Invalid
from stoker.stacks import signals

#: Bytes of a stream that are counted, however few are kept: where a chunk ends must be a number in the database too.
_FARTHEST = 2**62


def signal(call: Call) -> Reply:
    values = reading.body(call)
    status = call.services.store.write(
        lambda tx: signals.signal_run(
            tx, call.services.engine, server_id=call.server, config_id=call.path["config_id"], values=values
        )
    )
    return Reply(200, {"status": status})


def progress(call: Call) -> Reply:
    said = reading.body(call)
    config_id = call.path["config_id"]
    if reading.flag(said.get("beat"), "beat"):
        call.services.store.write(lambda tx: runs.beat(tx, server_id=call.server, config_id=config_id))
        return Reply(204)
    percent = reading.whole(said.get("percent"), "percent")
    if percent is not None and percent > 100:
        raise Invalid(f"percent must be from 0 to 100, not {percent}")
    message = reading.text(said.get("message"), "message", 65535)
    state = reading.text(said.get("state"), "state", 64) or "RUNNING"
    call.services.store.write(
        lambda tx: runs.progress(
            tx,
            server_id=call.server,
            config_id=config_id,
            state=state,
            percent=percent,
            message=message,
        )
    )
    return Reply(204)


def log(call: Call) -> Reply:
    offset = reading.whole(call.query.get("offset"), "offset", most=_FARTHEST) or 0
    known = call.services.store.write(
        lambda tx: output.log(
            tx,
            server_id=call.server,
            config_id=call.path["config_id"],
            stream=call.query.get("stream", ""),
            offset=offset,
            data=call.body,
            gap=call.query.get("gap") == "1",
            again=call.query.get("again") == "1",
            most=call.services.settings.max_log_bytes,
        )
    )
    return Reply(200, {"offset": known})
