"""Take stacks over from other services."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from stoker_client.cli._options import merge, pair
from stoker_client.cli._output import Output, echo, output_option
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError, NotFound

if TYPE_CHECKING:
    from stoker_migrate.heat_import.handover import ServerConfig


@click.group("import", no_args_is_help=True)
def group() -> None:
    """Take stacks over from other services."""


@group.command("heat")
@click.argument("stack")
@click.option("--os-cloud", "cloud", required=True, metavar="NAME", help="The entry of clouds.yaml of the other Heat.")
@click.option("--name", help="The name of the new stack; default: its name at the other Heat.")
@click.option("-t", "--template", metavar="FILE", help="A template in place of the stack's, such as a migrated one.")
@click.option("-e", "--environment", "environments", multiple=True, metavar="FILE", help="An additional environment.")
@click.option(
    "-P", "--parameter", "parameters", type=pair, multiple=True, metavar="NAME=VALUE",
    help="One parameter, such as a hidden one, which Heat does not show.",
)  # fmt: skip
@click.option(
    "--repoint", is_flag=True, help="Update the stack at the other Heat, so that its agents change to Stoker."
)
@click.option("--abandon", "is_abandoned", is_flag=True, help="Then remove the stack, without its resources, there.")
@click.option(
    "--agent-timeout", type=click.IntRange(0), default=300, show_default=True, metavar="SECONDS",
    help="How long --abandon waits for agents to change to Stoker; 0 does not wait.",
)  # fmt: skip
@output_option
@click.pass_obj
def command(
    session: Session,
    stack: str,
    cloud: str,
    name: str | None,
    template: str | None,
    environments: tuple[str, ...],
    parameters: tuple[tuple[str, str], ...],
    repoint: bool,
    is_abandoned: bool,
    agent_timeout: int,
    output: Output,
) -> None:
    """Take a stack of another Heat over, with the ids of its objects.

    The stack there stays as it is, unless --repoint or --abandon changes it. Agents repeat no run. Repeat an
    interrupted command: it continues where it stopped.
    """
    # imported here because keystoneauth and rich are slow, and usage errors do not need them
    from stoker_client.cli._stack_changes import emit_result
    from stoker_client.login import open_wire
    from stoker_migrate.heat_import import handover
    from stoker_migrate.heat_import.adoption_data import adoption_data, find_finished, find_import, refuse
    from stoker_migrate.heat_import.source_stack import read_stack

    other = open_wire(cloud)
    click.get_current_context().call_on_close(other.close)
    try:
        source = read_stack(other, stack)
    except NotFound:
        if not (is_abandoned and (finished := find_finished(session.client, name or stack))):
            raise
        emit_result(output, finished, outputs=True)  # an earlier command has abandoned the source
        return
    ref = find_import(session.client, name or source.stack["stack_name"], source)
    refusals = handover.find_refusals(other) if is_abandoned else []
    if ref is None:
        values = merge(parameters, (), "--parameter")
        data = adoption_data(source, values, _collect(template, environments), refusals)
        ref = session.client.stacks.create(_request(name, source.stack, data)).ref
    else:
        refuse([*source.problems, *refusals])
    _await_adoption(session, ref)
    change_agents = partial(handover.repoint, other, source) if repoint else _explain
    change_agents(handover.read_configs(session.client, ref))
    if is_abandoned:
        handover.await_agents(session.client, source, agent_timeout)
        handover.abandon(other, source)
    emit_result(output, session.client.stacks.show(ref), outputs=True)


def _collect(template: str | None, environments: tuple[str, ...]) -> dict[str, Any]:
    """Return what replaces the template and the environments of the source."""
    from stoker_client.templates.bundle import collect

    return collect(template, environments) if template or environments else {}


def _await_adoption(session: Session, ref: str) -> None:
    """Wait until the stack has adopted everything. Raises ClientError with a remedy if it could not."""
    from stoker_client.cli._wait import wait_for_stack
    from stoker_client.stacks import Operation

    status = session.client.stacks.show(ref, outputs=False)["stack_status"]
    if status.endswith("_COMPLETE"):  # of an earlier command
        return
    try:
        wait_for_stack(session.client, Operation(ref), "ADOPT_COMPLETE")
    except ClientError as error:
        if session.client.stacks.show(ref)["stack_status"] != "ADOPT_FAILED":
            raise
        name = ref.partition("/")[0]
        raise ClientError(
            f"{error}\nNothing has changed at the other Heat. Mend the cause, and remove the stack with `stoker stack"
            f" delete {name}`, which leaves all objects that it adopted. Then repeat the command"
        ) from None


def _request(name: str | None, stack: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Return the create request. Options that the stack had are those of the new one."""
    return {
        "stack_name": name or stack["stack_name"],
        "adopt_stack_data": data,
        "disable_rollback": stack.get("disable_rollback", True),
        **({"timeout_mins": stack["timeout_mins"]} if stack.get("timeout_mins") else {}),
    }


def _explain(configs: "Sequence[ServerConfig]") -> None:
    """Print what the user has to do on servers whose agents still use the other Heat."""
    if not configs:
        return
    echo(
        "These agents still use the other Heat (--repoint was not used). Write to /etc/os-collect-config.conf:",
        err=True,
    )
    for config in configs:
        echo(f"\n# {config.path} ({config.server_id})\n{config.ini()}", nl=False, err=True)
