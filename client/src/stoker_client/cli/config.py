"""Software configs: scripts and their inputs and outputs, immutable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from stoker_client.cli._groups import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._options import read_text
from stoker_client.cli._output import Output, emit_one, emit_value, output_option
from stoker_client.cli._session import Session
from stoker_client.errors import BadInput

_FIELDS = ("id", "name", "group", "creation_time", "inputs", "outputs", "options")
_TYPES = ("String", "Number", "CommaDelimitedList", "Json", "Boolean")
_SECTIONS = {"inputs": list, "outputs": list, "options": dict}
_NOUN = Noun("config", lambda client: client.configs)
config = Group(
    commands=[
        _NOUN.list(
            "List the software configs of the project.",
            ("id", "name", "group", "creation_time"),
            options=[
                click.option("--all", "derived", is_flag=True, help="Include the copies that deployments run."),
            ],
        ),
        _NOUN.delete("Delete software configs that no deployment uses."),
    ]
)


@config.command("create")
@click.argument("name")
@click.option(
    "-f", "--file", "file", required=True, metavar="FILE", help="The file with the config; - is standard input."
)
@click.option("--group", default="script", show_default=True, help="The hook that runs the config.")
@click.option("--definition", metavar="FILE", help="YAML with inputs, outputs and options.")
@click.option("-i", "--input", "inputs", multiple=True, metavar="NAME[:TYPE]", help="Declare an input.")
@click.option("--output-name", "outputs", multiple=True, metavar="NAME", help="Declare an output.")
@output_option
@click.pass_obj
def create(
    session: Session,
    /,
    *,
    name: str,
    file: str,
    group: str,
    definition: str | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
    output: Output,
) -> None:
    """Create a software config from a file.

    Inputs and outputs are declared with --input and --output-name, or in a YAML file with the sections inputs, outputs
    and options.
    """
    body = _definition(definition) if definition else {section: kind() for section, kind in _SECTIONS.items()}
    body["inputs"] = [*body["inputs"], *(_input(text) for text in inputs)]
    body["outputs"] = [*body["outputs"], *({"name": output} for output in outputs)]
    body |= {"name": name, "group": group, "config": read_text(file, "--file")}
    emit_one(output, session.client.configs.create(body), _FIELDS)


def _definition(path: str) -> dict[str, Any]:
    from stoker_client.templates.documents import parse  # imported here because only definitions need PyYAML

    data = parse(read_text(path, "--definition"), path)
    if not isinstance(data, dict) or set(data) - set(_SECTIONS):
        raise BadInput(f"{path}: a definition has the sections {', '.join(_SECTIONS)} and nothing else")
    for section, kind in _SECTIONS.items():
        if not isinstance(data.get(section) or kind(), kind):
            raise BadInput(f"{path}: {section} is not a {kind.__name__}")
    return {section: data.get(section) or kind() for section, kind in _SECTIONS.items()}


def _input(text: str) -> dict[str, str]:
    """Parse ``NAME`` or ``NAME:TYPE``, with the type in any case."""
    name, colon, type_name = text.partition(":")
    if not colon:
        return {"name": name}
    kind = next((name for name in _TYPES if name.lower() == type_name.lower()), None)
    if kind is None:
        raise click.UsageError(f"input {name!r}: {type_name!r} is not one of the types {', '.join(_TYPES)}")
    return {"name": name, "type": kind}


@config.command("show")
@click.argument("config")
@click.option("--config-only", is_flag=True, help="Print only its content.")
@output_option
@click.pass_obj
def show(session: Session, config: str, config_only: bool, output: Output) -> None:
    """Show a software config, or only its content."""
    details = session.client.configs.show(config)
    if config_only:
        emit_value(output, details.get("config"))
    else:
        emit_one(output, details, (*_FIELDS, "config"))
