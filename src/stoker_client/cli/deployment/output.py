"""Show the outputs of a deployment, or the value of one.

Without NAME the outputs that its config declares; --all adds the script's own (deploy_stdout, deploy_stderr,
deploy_status_code).
"""

import click

from stoker_client.cli._output import emit_list, emit_value, output_option
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError


@click.command()
@click.argument("deployment")
@click.argument("name", required=False)
@click.option("--all", "all_", is_flag=True, help="With what the script wrote, and its exit code.")
@output_option
@click.pass_obj
def command(session: Session, deployment: str, name: str | None, all_: bool, form: str) -> None:
    values = session.client.deployments.show(deployment).get("output_values") or {}
    if name is not None:
        if name not in values:
            known = ", ".join(sorted(values)) or "none so far"
            raise ClientError(f"deployment {deployment} has no output {name!r}; it has: {known}")
        emit_value(form, values[name])
        return
    shown = {key: value for key, value in values.items() if all_ or not key.startswith("deploy_")}
    if form != "table":
        emit_value(form, shown)
    else:
        emit_list(form, [{"output": key, "value": value} for key, value in shown.items()], ("output", "value"))
