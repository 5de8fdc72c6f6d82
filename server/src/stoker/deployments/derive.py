"""
Derived configs: copies of configs with the input values of one deployment; and what people see of configs and
deployments. Pure functions, except for redaction.

A derived config is what one run executes; the agent needs no other values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from stoker.model.config import CREDENTIALS
from stoker.model.deployment import Deployment
from stoker.model.errors import UserParameterMissing
from stoker.model.secrets import REDACTED
from stoker.store.rows import heat_time
from stoker.store.tx import Tx

#: Prefix of the inputs that Stoker adds to an author's own.
DEPLOY_PREFIX = "deploy_"
#: Name of the input with the run's timeout in seconds.
TIMEOUT = "deploy_timeout"
#: Descriptions of added inputs. Inputs that Heat has too keep Heat's wording.
_DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    name: {"description": text}
    for name, text in {
        "deploy_server_id": "ID of the server being deployed to",
        "deploy_action": "Name of the current action being deployed",
        "deploy_stack_id": "ID of the stack this deployment belongs to",
        "deploy_resource_name": "Name of this deployment resource in the stack",
        "deploy_signal_transport": "How the server should signal to heat with the deployment output values.",
        "deploy_signal_id": "ID of signal to use for signaling output values",
        "deploy_signal_verb": "HTTP verb to use for signaling output values",
        "deploy_auth_url": "URL for API authentication",
        "deploy_username": "Username for API authentication",
        "deploy_user_id": "User ID for API authentication",
        "deploy_password": "Password for API authentication",
        "deploy_project_id": "ID of project for API authentication",
        "deploy_region_name": "Region name for API authentication",
        "deploy_queue_id": "ID of queue to use for signaling output values",
        TIMEOUT: "Seconds after which the run is ended",
    }.items()
}


def derived_inputs(
    declared: Iterable[Mapping[str, Any]], values: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[dict[str, Any], ...]:
    """
    Return the inputs of a derived config in Heat's order: declared ones with their value, default or null, other
    values, then ``facts``, the ``deploy_*`` inputs.
    """
    inputs = [{**entry, "value": values.get(entry["name"], entry.get("default"))} for entry in declared]
    names = {entry["name"] for entry in inputs}
    inputs += [{"name": name, "type": "String", "value": value} for name, value in values.items() if name not in names]
    inputs += [
        {"name": name, **_DESCRIPTIONS.get(name, {}), "type": "String", "value": value} for name, value in facts.items()
    ]
    return tuple(inputs)


def mark_secrets(
    inputs: Iterable[Mapping[str, Any]], is_secret: Callable[[Any], bool], names: Collection[str] = ()
) -> tuple[Mapping[str, Any], ...]:
    """
    Return ``inputs`` with ``secret: true`` in each, except for Stoker's own, that is one of ``names`` or whose value
    ``is_secret``.
    """
    marked = [
        {**entry, "secret": True}
        if not entry["name"].startswith(DEPLOY_PREFIX) and (entry["name"] in names or is_secret(entry.get("value")))
        else entry
        for entry in inputs
    ]
    return tuple(marked)


def redact_config(tx: Tx, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rendered config as shown to people: only agents receive secret inputs and signal URLs."""
    inputs = [
        _redact_input(entry) if entry.get("secret") or entry["name"] in CREDENTIALS else entry
        for entry in config["inputs"]
    ]
    redacted: dict[str, Any] = tx.secrets.redact({**config, "inputs": inputs})
    return redacted


def redact_metadata(tx: Tx, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's metadata as shown to people. That of a server contains the configs that it has to run."""
    configs = [
        redact_config(tx, config) if _is_config(config) else config for config in _as_list(metadata.get("deployments"))
    ]
    shown = {**metadata, "deployments": configs} if configs else metadata
    redacted: dict[str, Any] = tx.secrets.redact(shown)
    return redacted


def redact_deployment(tx: Tx, deployment: Deployment, names: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """
    Return a deployment in the form of Heat's API, as shown to people; with ``names`` (``store.audit.names_of``), also
    these and the requester.
    """
    shown: dict[str, Any] = {
        "id": deployment.id,
        "server_id": deployment.server_id,
        "config_id": deployment.config_id,
        "input_values": tx.secrets.redact(dict(deployment.input_values)),
        "output_values": tx.secrets.redact(dict(deployment.output_values)),
        "action": deployment.action,
        "status": deployment.status,
        "status_reason": deployment.status_reason,
        "changed": deployment.changed,
        "changed_items": deployment.changed_items,
        "creation_time": heat_time(deployment.created_at),
    }
    if deployment.updated_at is not None:
        shown["updated_time"] = heat_time(deployment.updated_at)
    if names is not None:
        shown |= {**names, "requested_by": deployment.requested_by}
    return shown


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_config(value: Any) -> bool:
    """Return whether ``value`` has the form of a config: metadata may contain anything."""
    return isinstance(value, Mapping) and isinstance(value.get("inputs"), list)


def _redact_input(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**entry, **{part: REDACTED for part in ("value", "default") if entry.get(part) is not None}}


def without_secrets(values: Mapping[str, Any], declared: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return ``values`` with the values of secret inputs redacted."""
    secret = {entry["name"] for entry in declared if entry.get("secret")}
    return redact_named(values, secret) if secret else values


def redact_named(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return ``values`` with REDACTED in place of the values of ``names``."""
    return {name: REDACTED if name in names else value for name, value in values.items()}


def replaces_deployment(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an input with ``replace_on_change`` changes, which requires a new deployment."""
    old = {entry["name"]: entry.get("value") for entry in before}
    return any(
        entry["name"] in old and old[entry["name"]] != entry.get("value")
        for entry in after
        if entry.get("replace_on_change")
    )


def substitute(config: Any, values: Mapping[str, Any], *, key: str, strict: bool) -> Any:
    """
    Return a structured config with every ``{key: name}`` replaced by the value of the input ``name``.

    Unknown names become null; with ``strict`` they raise UserParameterMissing. For example:

        substitute({"port": {"get_input": "p"}}, {"p": 80}, key="get_input", strict=True) == {"port": 80}
    """
    if isinstance(config, Mapping):
        if len(config) == 1:
            ((only, name),) = config.items()
            if only == key and isinstance(name, str):
                if strict and name not in values:
                    raise UserParameterMissing(f"The Parameter ({name}) was not provided.")
                return values.get(name)
        return {name: substitute(value, values, key=key, strict=strict) for name, value in config.items()}
    if isinstance(config, list | tuple):
        return [substitute(item, values, key=key, strict=strict) for item in config]
    return config
