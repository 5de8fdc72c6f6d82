"""The hooks that configs bring along: names of stored hooks become URLs and digests when a config is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.artifact import Artifact, ArtifactKind
from stoker.model.delivered_hook import OPTION, STORED_PATH, DeliveredHook, HookName, parse_option
from stoker.model.errors import Invalid
from stoker.store import artifacts
from stoker.store.tx import Tx


def resolve_hook(tx: Tx, project_id: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    Return a config's options with the hook as agents fetch it.

    A name becomes the version that is the newest now, because a config never changes. Raises Invalid for a hook that
    the project cannot read.
    """
    if options.get(OPTION) is None:
        return options
    hook = parse_option(options[OPTION])
    if isinstance(hook, HookName):
        return {**options, OPTION: _to_option(_find(tx, project_id, hook))}
    if hook.is_stored:
        return {**options, OPTION: _to_option(_find_copy(tx, project_id, hook))}
    return {**options, OPTION: {"url": hook.url, "sha256": hook.sha256}}


def find_hook(tx: Tx, project_id: str, value: Any) -> DeliveredHook:
    """Return the hook that a value of the option ``hook`` names, as agents would fetch it now. Raises Invalid."""
    resolved = resolve_hook(tx, project_id, {OPTION: value})[OPTION]
    return DeliveredHook(resolved["url"], resolved["sha256"])


def check_option(options: Any) -> None:
    """Check the form of the option ``hook`` before a config is created. Raises Invalid."""
    if isinstance(options, Mapping) and options.get(OPTION) is not None:
        parse_option(options[OPTION])


def _find(tx: Tx, project_id: str, hook: HookName) -> Artifact:
    artifact = artifacts.find(tx, ArtifactKind.HOOK, project_id, hook.name, hook.version)
    if artifact is None:
        version = "" if hook.version is None else f" with the version {hook.version}"
        raise Invalid(
            f"There is no stored hook {hook.name!r}{version}: add it with `stoker hook add {hook.name} FILE`."
        )
    return artifact


def _find_copy(tx: Tx, project_id: str, hook: DeliveredHook) -> Artifact:
    """Return the stored hook of a config that a client derived from another one."""
    artifact = artifacts.find_by_digest(tx, ArtifactKind.HOOK, project_id, hook.sha256)
    if artifact is None or hook.url != STORED_PATH + hook.sha256:
        raise Invalid(f"There is no stored hook with the SHA-256 {hook.sha256}: name a hook of `stoker hook list`.")
    return artifact


def _to_option(artifact: Artifact) -> dict[str, Any]:
    return {
        "name": artifact.name,
        "version": artifact.version,
        "url": f"{STORED_PATH}{artifact.sha256}",
        "sha256": artifact.sha256,
    }
