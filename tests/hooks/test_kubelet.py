"""The hook of the group kubelet with real pods of podman. A program that plays manifests takes the kubelet's place."""

from __future__ import annotations

import pytest

from hooks.containers import IMAGE, container_machine

GROUP = "kubelet"
pytestmark = pytest.mark.slow

#: Runs the pods of a directory as the kubelet does: named after their files, with the kubelet's names of containers.
_KUBELET = """
import json, os, pathlib, subprocess, time

MANIFESTS, COPIES = pathlib.Path("/etc/kubernetes/manifests"), pathlib.Path("/run/pods")
COPIES.mkdir(exist_ok=True)

def podman(*words):
    return subprocess.run(["podman", *words], capture_output=True, text=True).stdout.split()

while True:
    wanted = {path.stem: path for path in MANIFESTS.glob("*.json")}
    for pod in podman("pod", "ps", "--format", "{{.Name}}"):
        if pod not in wanted:
            podman("pod", "rm", "-f", "-t", "0", pod)
            (COPIES / pod).unlink(missing_ok=True)
    for pod, path in wanted.items():
        if (COPIES / pod).exists():
            continue
        try:
            manifest = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # removed, or not written completely
        spec = manifest.get("spec") or {"containers": manifest["containers"]}
        kind = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec}
        (COPIES / pod).write_text(json.dumps(kind))
        podman("kube", "play", str(COPIES / pod))
        for container in spec["containers"]:
            podman("rename", pod + "-" + container["name"], "k8s_%s_%s_default_0" % (container["name"], pod))
    time.sleep(0.1)
"""
_QUICK = {"poll_period": 0.2, "images_timeout": 60, "containers_timeout": 100}


@pytest.fixture(scope="module")
def machine(machines, container_base):
    with container_machine(machines, container_base, "podman") as machine:
        machine.put("/root/kubelet.py", _KUBELET)
        machine.run(["mkdir", "-p", "/etc/kubernetes/manifests"])
        machine.run(
            [
                "systemd-run",
                "--unit=kubelet",
                "--property=Restart=always",
                "--property=StartLimitIntervalSec=0",
                "python3",
                "/root/kubelet.py",
            ]
        )
        yield machine


@pytest.fixture
def hook(machine_hook):
    machine_hook.environment["HEAT_DOCKER_CMD"] = "podman"
    return machine_hook


def pod(*names, image=IMAGE):
    containers = [{"name": name, "image": image, "command": ["sleep", "infinity"]} for name in names]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app"}, "spec": {"containers": containers}}


def pods(machine):
    return machine.run(["podman", "pod", "ps", "--format", "{{.Name}}"]).stdout.split()


def test_a_pod_runs_until_its_deployment_is_deleted(machine, hook):
    outcome = hook.run(entry := hook.entry(pod("web", "helper"), (), _QUICK))
    assert (outcome.code, outcome.changed) == (0, True), outcome
    name = entry["id"].replace("-", "")[:15]
    assert outcome.items == [f"/etc/kubernetes/manifests/{name}.json"]
    assert pods(machine) == [name]
    assert hook.run(entry).changed is False
    assert hook.run(entry, mode="check").changed is False
    machine.run(["podman", "stop", "-t", "0", f"k8s_web_{name}_default_0"])
    drift = hook.run(entry, mode="check")
    assert (drift.items, drift.report["deploy_changes"][0]["diff"]) == (["web"], "not running")
    assert hook.run(entry, mode="undo").changed is True
    machine.until("sh", "-c", 'test -z "$(podman pod ps -q)"')


def test_an_update_and_a_delete_remove_the_pod_of_the_earlier_config(machine, hook):
    owner = {"deploy_stack_id": "web/1", "deploy_resource_name": "pod"}
    first = hook.entry(pod("web"), (), _QUICK, **owner)
    second = hook.entry(pod("web", "more"), (), _QUICK, **owner, deploy_action="UPDATE")
    assert hook.run(first).code == 0
    assert hook.run(second).code == 0
    name = second["id"].replace("-", "")[:15]
    machine.until("sh", "-c", f'test "$(podman pod ps --format {{{{.Name}}}})" = {name}')
    gone = hook.run(hook.entry(pod("web"), (), _QUICK, **owner, deploy_action="DELETE"))
    assert (gone.code, gone.changed) == (0, True)
    machine.until("sh", "-c", 'test -z "$(podman pod ps -q)"')


def test_an_image_that_does_not_come_fails_the_run(hook):
    quick = {**_QUICK, "images_timeout": 0.5}
    failed = hook.run(entry := hook.entry(pod("web", image="localhost/none:1"), (), quick))
    assert failed.code == 1
    assert "waiting for images: localhost/none:1" in failed.report["deploy_status_reason"]
    hook.run(entry, mode="undo")
