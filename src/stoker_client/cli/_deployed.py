"""Waiting for deployments."""

import click

from stoker_client.cli._failures import stderr_of
from stoker_client.client import Client
from stoker_client.errors import ClientError
from stoker_client.shapes import Deployment


def wait_for(client: Client, id_: str) -> Deployment:
    """Wait until a deployment is over; fail if it failed, its script's last words first."""
    wait_for_end(client, id_, f"goes on (`stoker deployment cancel {id_}` ends it)")
    done = client.deployments.show(id_, patient=True)
    if done["status"] == "FAILED":
        if text := stderr_of(done).rstrip("\n"):
            click.echo(text, err=True)
        raise ClientError(f"deployment {id_} failed: {done['status_reason'] or 'no reason given'}")
    return done


def wait_for_end(client: Client, id_: str, left: str) -> None:
    """Wait until a deployment is over, however it ends. After Ctrl-C, ``left`` says what it does."""
    try:
        client.deployments.wait(id_)
    except KeyboardInterrupt:
        click.echo(f"stoker: no longer waiting; deployment {id_} {left}", err=True)
        raise
