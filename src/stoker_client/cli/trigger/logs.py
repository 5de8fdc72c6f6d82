"""Print the output of a trigger's runs; with several runs, each line begins with the name of the server."""

import click

from stoker_client.cli._log_output import LogPrinter, stream_option
from stoker_client.cli._output import data_option, emit_data, raw_option
from stoker_client.cli._servers import service_name
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError
from stoker_client.shapes import Target
from stoker_client.target_labels import TargetLabels
from stoker_client.trigger_logs import follow_written, read_written


@click.command()
@click.argument("trigger")
@click.option("-f", "--follow", is_flag=True, help="Continue until the end.")
@click.option("--server", metavar="SERVER", help="Only this server: name or id.")
@stream_option
@raw_option
@data_option
@click.pass_obj
def command(
    session: Session, /, *, trigger: str, follow: bool, server: str | None, stream: str | None, raw: bool, form: str
) -> None:
    client = session.client
    id_ = client.triggers.find_id(trigger)
    wanted_server = service_name(client, server) if server is not None else None
    targets = [target for target in client.triggers.show(id_).get("targets") or [] if _is(target, wanted_server)]
    if server is not None and not targets:
        raise ClientError(f"trigger {trigger} does not run on a server {server!r} (`stoker trigger show` says where)")
    server_ids, labels = {target["server_id"] for target in targets}, TargetLabels(targets)
    chunks = follow_written(client, id_) if follow else read_written(client, targets)
    chunks = (
        chunk for chunk in chunks
        if stream in (None, chunk["stream"]) and (server is None or chunk["server_id"] in server_ids)
    )  # fmt: skip
    if form != "table" and not follow:
        emit_data(form, list(chunks))
    else:
        LogPrinter(form, name_of=labels.of if len(targets) > 1 else None, raw=raw).all(chunks)


def _is(target: Target, server: str | None) -> bool:
    return server in (None, target["server_id"], target.get("server_name"))
