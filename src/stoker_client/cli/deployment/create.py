"""Deploy a config to a server: its agent runs it."""

from collections.abc import Sequence
from typing import Any

import click

from stoker_client.cli._deployment_wait import report_waiting, wait_for
from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._servers import server_id
from stoker_client.cli._session import Session
from stoker_client.cli._values import given_options, pair

FIELDS = ("id", "server_id", "config_id", "action", "status", "status_reason", "creation_time", "output_values")


@click.command()
@click.option("--config", "config", required=True, metavar="CONFIG", help="The config: id, or a name that is unique.")
@click.option("--server", "server", required=True, metavar="SERVER", help="The server: name or id.")
@click.option("-i", "--input", "inputs", type=pair, multiple=True, metavar="NAME=VALUE", help="The value of one input.")
@click.option("--allow-undeclared", is_flag=True, help="Pass inputs that the config does not declare.")
@click.option("--action", default="CREATE", show_default=True, help="The action that the config receives.")
@click.option("--signal-transport", default="STOKER_SIGNAL", show_default=True, help="The signal transport.")
@click.option("--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="The time limit of the run.")
@click.option("--name", help="A name for the deployment.")
@click.option("--wait", is_flag=True, help="Wait until the operation ends; fail if it fails.")
@output_option
@click.pass_obj
def command(
    session: Session,
    /,
    *,
    config: str,
    server: str,
    inputs: Sequence[tuple[str, str]],
    allow_undeclared: bool,
    wait: bool,
    output: Output,
    **more: Any,
) -> None:
    client = session.client
    body = {
        "config_id": client.configs.find_id(config),
        "server_id": server_id(client, server),
        "input_values": dict(inputs),
        **({"allow_undeclared": True} if allow_undeclared else {}),
    }
    deployment = client.deployments.create(body | given_options(more))
    if wait:
        report_waiting(deployment)
        deployment = wait_for(session.client, deployment["id"])
    emit_one(output, deployment, FIELDS)
