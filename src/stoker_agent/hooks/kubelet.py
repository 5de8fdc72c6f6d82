"""
Hook of the group ``kubelet``: writes a pod's manifest for a kubelet, then waits for its images and containers.

Options, in seconds: ``images_timeout`` (600), ``containers_timeout`` (120) and ``poll_period`` (5). An update and
DELETE remove the former manifest. ``HEAT_KUBELET_MANIFESTS`` replaces the directory of static pods, ``HEAT_DOCKER_CMD``
the container engine.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

from stoker_agent.files import write
from stoker_agent.hook_contract import Change, HookError, HookRun, Result


def apply(run: HookRun) -> Result:
    """Write the manifest and wait until the pod's containers run."""
    if run.is_removal:
        return undo(run)
    manifest = _manifest(run)
    text = json.dumps(run.mapping(), indent=4, sort_keys=True)
    _replace_former(run, manifest)
    is_new = not manifest.is_file() or manifest.read_text() != text
    if is_new:
        _place(manifest, text)
    period = float(run.options.get("poll_period", 5))
    images = [str(container["image"]) for container in _containers(run)]
    _wait(lambda: _missing_images(run, images), float(run.options.get("images_timeout", 600)), period, "images")
    _wait(lambda: _missing_containers(run), float(run.options.get("containers_timeout", 120)), period, "containers")
    return Result(changed=is_new, changes=[Change(str(manifest))] if is_new else [])


def check(run: HookRun) -> Result:
    """Compare the manifest and the running containers with the config."""
    manifest = _manifest(run)
    changes = []
    if not manifest.is_file() or manifest.read_text() != json.dumps(run.mapping(), indent=4, sort_keys=True):
        changes.append(Change(str(manifest)))
    changes += [Change(name, diff="not running") for name in _missing_containers(run)]
    return Result.of(changes)


preview = check


def undo(run: HookRun) -> Result:
    """Remove the deployment's manifest; the kubelet then stops the pod."""
    manifests = {Path(run.memory.load().get("manifest", _manifest(run))), _manifest(run)}
    changes = [Change(str(manifest), diff="removed") for manifest in sorted(manifests) if manifest.exists()]
    for change in changes:
        Path(change.item).unlink()
    run.memory.clear()
    return Result.of(changes)


def _replace_former(run: HookRun, manifest: Path) -> None:
    """Remove the manifest of the deployment's former config, and record the one of this config."""
    former = run.memory.load().get("manifest")
    run.memory.store({"manifest": str(manifest)})
    if former and Path(former) != manifest:
        Path(former).unlink(missing_ok=True)


def _place(manifest: Path, text: str) -> None:
    """Write the manifest in one step: the kubelet reads the directory at any time, and ignores the names with a dot."""
    manifest.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(manifest, text.encode())


def _manifest(run: HookRun) -> Path:
    folder = Path(os.environ.get("HEAT_KUBELET_MANIFESTS", "/etc/kubernetes/manifests"))
    return folder / f"{_pod_part(run)}.json"


def _pod_part(run: HookRun) -> str:
    """Return the part of the config's id that the names of the pod's containers contain."""
    return run.id.replace("-", "")[:15]


def _containers(run: HookRun) -> List[Dict[str, Any]]:
    pod = run.mapping()
    containers = (pod.get("spec") or pod).get("containers") or []
    if not isinstance(containers, list) or not all(
        isinstance(item, dict) and {"name", "image"} <= set(item) for item in containers
    ):
        raise HookError("each of the pod's containers needs a name and an image")
    return containers


def _docker() -> str:
    return os.environ.get("HEAT_DOCKER_CMD", "docker")


def _missing_images(run: HookRun, images: List[str]) -> List[str]:
    _, text = run.read([_docker(), "images", "--format", "{{.Repository}}:{{.Tag}}"])
    present = text.split()
    prefixes = {image: image if ":" in image else f"{image}:" for image in images}
    return [image for image, prefix in prefixes.items() if not any(name.startswith(prefix) for name in present)]


def _missing_containers(run: HookRun) -> List[str]:
    _, text = run.read([_docker(), "ps", "--format", "{{.Names}}"])
    names = text.split()
    patterns = {
        str(container["name"]): re.compile(rf"k8s_{re.escape(str(container['name']))}[._].*{_pod_part(run)}")
        for container in _containers(run)
    }
    return [name for name, pattern in patterns.items() if not any(pattern.search(running) for running in names)]


def _wait(missing: Callable[[], List[str]], seconds: float, period: float, what: str) -> None:
    """Wait until nothing is missing. Raises HookError after the given seconds."""
    until = time.monotonic() + seconds
    while True:
        names = missing()
        if not names:
            return
        if time.monotonic() >= until:
            raise HookError(f"timed out after {seconds:g} s waiting for {what}: {', '.join(names)}")
        print(f"waiting for {what}: {', '.join(names)}", flush=True)
        time.sleep(min(period, max(0.0, until - time.monotonic())))
