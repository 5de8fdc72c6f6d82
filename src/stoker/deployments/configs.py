"""Creation and deletion of configs, and their content as runs use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from stoker.catalog import entry
from stoker.deployments import schema
from stoker.deployments.derive import DEPLOY_PREFIX
from stoker.deployments.hook_delivery import resolve_hook
from stoker.deployments.run_options import check_options
from stoker.hot.bounds import MAX_TEMPLATE
from stoker.hot.text import read
from stoker.model.check import CheckSettings
from stoker.model.config import UNGROUPED, Config
from stoker.model.errors import Invalid, ResourceInUse
from stoker.model.trigger import Content
from stoker.store import configs, schedules
from stoker.store.tx import Tx


def new_config(
    tx: Tx,
    project_id: str,
    *,
    name: Any = None,
    group: Any = None,
    config: Any = None,
    inputs: Any = None,
    outputs: Any = None,
    options: Any = None,
    id: str | None = None,
    may_be_owned: bool = False,
) -> tuple[Config, str]:
    """
    Store a new config. Return the config and its rendered form. Raises Invalid for values that Heat does not store.

    If ``config`` is the text of a catalogue entry, the config has the entry's group, inputs, outputs and options.
    ``id``: that of an imported config. ``may_be_owned``: whether Stoker deletes a derived config with its deployment.
    """
    if options is not None and not isinstance(options, Mapping):
        raise Invalid(f"options must be a map, not {type(options).__name__}")
    own = {
        "group": _text(group, "group"),
        "config": config,
        "inputs": schema.inputs(inputs),
        "outputs": schema.outputs(outputs),
        "options": options or {},
    }
    fields = expand_entry(own)
    if fields is not own:
        fields = {**fields, "inputs": schema.inputs(fields["inputs"]), "outputs": schema.outputs(fields["outputs"])}
    check_options(fields["options"], fields["group"])
    CheckSettings.of(fields["options"])
    new = Config(
        id=id or str(uuid4()),
        project_id=project_id,
        name=_text(name, "name"),
        group=fields["group"],
        config=fields["config"],
        inputs=fields["inputs"],
        outputs=fields["outputs"],
        options=resolve_hook(tx, project_id, fields["options"]),
        created_at=tx.now,
    )
    if may_be_owned and new.is_derived:
        new = replace(new, is_owned=True)
    return new, configs.add(tx, new)


def expand_entry(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    Return the fields of a config whose content is a catalogue entry, merged with the entry. Other fields are unchanged.

    Raises Invalid.
    """
    if not entry.is_entry_text(fields["config"]):
        return fields
    document = read(fields["config"], "Catalogue entry", MAX_TEMPLATE)
    return entry.merge(entry.parse(document), fields) if entry.is_document(document) else fields


def delete_config(tx: Tx, id: str, project_id: str) -> None:
    """
    Delete a config.

    Raises EntityNotFound, or ResourceInUse while a deployment or schedule uses the config (Heat answers 500 in this
    case).
    """
    configs.lock(tx, id)
    configs.get(tx, id, project_id)
    if configs.in_use(tx, id):
        raise ResourceInUse(f"The software config ({id}) is used by a deployment: delete that first.")
    schedule = schedules.using_config(tx, id)
    if schedule is not None:
        raise ResourceInUse(
            f"The software config ({id}) is used by the schedule {schedule.name!r} ({schedule.id}): delete or change"
            " that first."
        )
    configs.delete(tx, id)


def content_of(config: Config) -> Content:
    """Return the content of a config, without facts of a stack."""
    return Content(
        name=config.name,
        group=config.group or UNGROUPED,
        config=config.config,
        inputs=config.inputs,
        outputs=config.outputs,
        options=config.options,
        facts={},
    )


def source_inputs(
    inputs: tuple[Mapping[str, Any], ...],
) -> tuple[tuple[Mapping[str, Any], ...], dict[str, Any]]:
    """Split the inputs of a derived config into declarations and values, without those specific to one deployment."""
    declared = [entry for entry in inputs if not entry["name"].startswith(DEPLOY_PREFIX)]
    without_values = tuple({name: part for name, part in entry.items() if name != "value"} for entry in declared)
    return without_values, {entry["name"]: entry["value"] for entry in declared if "value" in entry}


def _text(value: Any, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a string, not {type(value).__name__}")
    if len(value) > 255 or "\0" in value:
        raise Invalid(f"{name} must be at most 255 characters, without NUL")
    return value
