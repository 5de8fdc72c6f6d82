"""Show the outputs of a deployment, or the value of one.

Without NAME, show the outputs that the config declares; --all adds deploy_stdout, deploy_stderr and
deploy_status_code.
"""

import click

from stoker_client.cli._output import Output, emit_list, emit_value, list_options, raw_option
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError


@click.command()
@click.argument("deployment")
@click.argument("name", required=False)
@click.option("--all", "all_", is_flag=True, help="Include the script's output and exit code.")
@raw_option
@list_options()
@click.pass_obj
def command(session: Session, deployment: str, name: str | None, all_: bool, raw: bool, output: Output) -> None:
    deployments = session.client.deployments
    values = deployments.show(deployments.find_id(deployment)).get("output_values") or {}
    if name is not None:
        if name not in values:
            names = ", ".join(sorted(values)) or "none so far"
            raise ClientError(f"deployment {deployment} has no output {name!r}; it has: {names}")
        emit_value(output, values[name], raw=raw)
        return
    outputs = {key: value for key, value in values.items() if all_ or not key.startswith("deploy_")}
    if output.is_data and not output.columns:
        emit_value(output, outputs)
    else:
        emit_list(output, [{"output": key, "value": value} for key, value in outputs.items()], ("output", "value"))
