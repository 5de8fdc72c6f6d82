"""Show the outputs of a stack, or the value of one."""

import click

from stoker_client.cli._output import Output, emit_list, emit_value, list_options
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError

COLUMNS = ("output_key", "output_value", "output_error", "description")


@click.command()
@click.argument("stack")
@click.argument("key", required=False)
@list_options()
@click.pass_obj
def command(session: Session, stack: str, key: str | None, output: Output) -> None:
    if key is None:
        outputs = session.client.stacks.show(stack).get("outputs") or []
        emit_list(output, outputs, [column for column in COLUMNS if column != "output_error" or _any_error(outputs)])
        return
    value = session.client.stacks.output(stack, key)
    if value.get("output_error"):
        raise ClientError(f"output {key} has an error: {value['output_error']}")
    emit_value(output, value.get("output_value"))


def _any_error(outputs: object) -> bool:
    return isinstance(outputs, list) and any(output.get("output_error") for output in outputs)
