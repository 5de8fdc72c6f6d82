"""Check whether servers still are as deployments left them, and show the differences.

Checks the deployments of a stack with its nested stacks, or all deployments on servers. Ends with 3 if something has
drifted, else with 1 if the state of a deployment is unknown. Configs without a check, such as scripts without the
option check, are no error unless --strict is set. Nothing changes on the servers.
"""

from collections.abc import Sequence

import click

from stoker_client.checks import DRIFTED, UNKNOWN, UNSUPPORTED, awaits_answer, state_of
from stoker_client.cli._drift_views import COLUMNS, WIDE, cells, differences
from stoker_client.cli._exit_codes import DRIFT, FAILED, TIMED_OUT
from stoker_client.cli._output import Output, echo, emit_list, list_options
from stoker_client.cli._servers import choose_servers, selector_option
from stoker_client.cli._session import Session
from stoker_client.client import Client
from stoker_client.errors import ClientError
from stoker_client.servers import join_selectors
from stoker_client.shapes import Check


@click.command()
@click.argument("stack", required=False)
@click.option(
    "--server", "servers", multiple=True, metavar="SERVER", help="This server: name, id or pattern; can be repeated."
)
@selector_option("All servers that SELECTOR selects.")
@click.option("--timeout", type=click.IntRange(min=1), default=120, show_default=True, metavar="SECONDS",
              help="How long to wait for the agents.")  # fmt: skip
@click.option("--strict", is_flag=True, help="End with 1 also if a config cannot be checked.")
@list_options()
@click.pass_obj
def command(
    session: Session,
    stack: str | None,
    servers: Sequence[str],
    selectors: Sequence[str],
    timeout: int,
    strict: bool,
    output: Output,
) -> int:
    if bool(stack) + bool(servers) + bool(selectors) != 1:
        raise click.UsageError("say what to check: a STACK, --server or --label")
    client = session.client
    requested = client.checks.request(
        stack=None if stack is None else client.stacks.show(stack, outputs=False)["id"],
        servers=[server["id"] for server in client.servers.find(servers)],
        selector=join_selectors(selectors),
    )
    if not requested:
        if selectors:
            choose_servers(client, (), selectors)  # an error if no server matches
        raise ClientError("there is no deployment to check")
    checks = [_complete(client, check) for check in client.checks.wait(requested, timeout)]
    emit_list(output, checks, COLUMNS, wide=WIDE, cells=cells)
    if output.form in ("table", "wide"):
        for check in checks:
            if state_of(check) == DRIFTED:
                echo("\n" + "\n".join(differences(check)))
    return _exit_code(checks, strict=strict)


def _complete(client: Client, check: Check) -> Check:
    """Return the check, with its differences if it has drifted."""
    return client.checks.show(check["deployment_id"]) if state_of(check) == DRIFTED else check


def _exit_code(checks: Sequence[Check], *, strict: bool) -> int:
    states = {state_of(check) for check in checks}
    if DRIFTED in states:
        return DRIFT
    if any(awaits_answer(check) for check in checks):
        return TIMED_OUT
    return FAILED if UNKNOWN in states or (strict and UNSUPPORTED in states) else 0
