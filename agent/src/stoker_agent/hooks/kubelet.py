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

from stoker_agent.hook_contract import HookError, HookRun, Result, container_engine
from stoker_agent.steps import Steps, apply_steps


def apply(run: HookRun) -> Result:
    """Write the manifest and wait until the pod's containers run. On DELETE remove it: the kubelet stops the pod."""
    return apply_steps(run, _apply, run.resource_memory)


check = preview = undo = apply


def _apply(run: HookRun, steps: Steps) -> None:
    folder = Path(os.environ.get("HEAT_KUBELET_MANIFESTS", "/etc/kubernetes/manifests"))
    manifest = folder / f"{_pod_part(run)}.json"
    text = json.dumps(run.mapping(), indent=4, sort_keys=True)
    steps.undo(keep=[str(manifest)])
    steps.file(manifest, text, 0o600, owner=None, secret=True)
    if steps.is_dry:
        for name in _missing_containers(run):
            steps.change(name, "not running")
        return
    period = float(run.options.get("poll_period", 5))
    images = [str(container["image"]) for container in _containers(run)]
    _wait(lambda: _missing_images(run, images), float(run.options.get("images_timeout", 600)), period, "images")
    _wait(lambda: _missing_containers(run), float(run.options.get("containers_timeout", 120)), period, "containers")


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


def _missing_images(run: HookRun, images: List[str]) -> List[str]:
    _, text = run.read([container_engine(), "images", "--format", "{{.Repository}}:{{.Tag}}"])
    present = text.split()
    prefixes = {image: image if ":" in image else f"{image}:" for image in images}
    return [image for image, prefix in prefixes.items() if not any(name.startswith(prefix) for name in present)]


def _missing_containers(run: HookRun) -> List[str]:
    _, text = run.read([container_engine(), "ps", "--format", "{{.Names}}"])
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
