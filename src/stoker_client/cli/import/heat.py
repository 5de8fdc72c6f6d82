"""Take a stack of another Heat over, with the ids of its objects.

The stack at the other Heat stays as it is, unless --repoint or --abandon changes it. Agents repeat no run.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from stoker_client.cli._output import Output, echo, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import merge, pair

if TYPE_CHECKING:
    from stoker_client.heat_import.agent_configs import ServerConfig


@click.command()
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
    output: Output,
) -> None:
    # imported here because keystoneauth and rich are slow, and usage errors do not need them
    from stoker_client.cli._stack_wait import emit_result, wait_for
    from stoker_client.connection import open_wire
    from stoker_client.heat_import import agent_configs
    from stoker_client.heat_import.adoption_data import adoption_data
    from stoker_client.heat_import.source_stack import read_stack
    from stoker_client.templates.bundle import collect

    other = open_wire(cloud)
    click.get_current_context().call_on_close(other.close)
    source = read_stack(other, stack)
    replaced = collect(template, environments).body() if template or environments else {}
    data = adoption_data(source, merge(parameters, (), "--parameter"), replaced)
    ref = session.client.stacks.create(_request(name, source.stack, data))
    wait_for(session.client, ref, "ADOPT")
    configs = session.client.stacks.server_configs(ref)
    left = agent_configs.repoint(other, source, configs) if repoint else configs
    if is_abandoned:
        agent_configs.abandon(other, source)
    emit_result(output, session.client.stacks.show(ref), outputs=True)
    _explain(left, is_repointed=repoint)


def _request(name: str | None, stack: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Return the create request. Options that the stack had are those of the new one."""
    return {
        "stack_name": name or stack["stack_name"],
        "adopt_stack_data": data,
        "disable_rollback": stack.get("disable_rollback", True),
        **({"timeout_mins": stack["timeout_mins"]} if stack.get("timeout_mins") else {}),
    }


def _explain(configs: "Sequence[ServerConfig]", *, is_repointed: bool) -> None:
    """Print what the user has to do on servers whose agents still use the other Heat."""
    if not configs:
        return
    reason = "the update of the other stack does not reach nested stacks" if is_repointed else "--repoint was not used"
    echo(f"\nThese agents still use the other Heat ({reason}). Write to /etc/os-collect-config.conf:", err=True)
    for config in configs:
        echo(f"\n# {config.path} ({config.server_id})\n{config.ini()}", nl=False, err=True)
