"""The identity of a machine: kept over reinstallations, different for copies, never the ids themselves."""

from __future__ import annotations

import pytest

from stoker_agent import machine
from stoker_agent.config import Config, Paths, keep
from stoker_agent.enrollment import ensure_enrollment

MACHINE_ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def ids(monkeypatch, tmp_path):
    """The files that name this machine, which does not run in a container."""
    folder = tmp_path / "ids"
    folder.mkdir()
    for name in ("_MACHINE_ID", "_CLOUD_INIT", "_BOARD", "_CONTAINER_MANAGER"):
        monkeypatch.setattr(machine, name, folder / name)
    monkeypatch.setattr(machine, "_CONTAINERS", (folder / "container",))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    folder.joinpath("_MACHINE_ID").write_text(f"{MACHINE_ID}\n")
    return folder


@pytest.fixture
def paths(tmp_path):
    paths = Paths.of(str(tmp_path / "root"))
    paths.make()
    return paths


def test_a_reinstalled_machine_has_another_instance_and_the_same_machine(ids, paths):
    """The ids themselves stay on the machine."""
    ids.joinpath("_BOARD").write_text("ABCD-EF\n")
    before = machine.identity(paths.state)
    assert machine.identity(paths.state) == before
    stored = paths.state.joinpath("instance")
    for text in (MACHINE_ID, "abcd-ef"):
        assert text not in "".join(before.values()) + stored.read_text()
    assert machine.cloud_id() == "abcd-ef"
    stored.unlink()
    after = machine.identity(paths.state)
    assert (after["machine"], after["instance"] == before["instance"]) == (before["machine"], False)


@pytest.mark.parametrize("name", ["_MACHINE_ID", "_CLOUD_INIT"])
def test_a_copy_is_another_installation_on_another_machine(ids, paths, name):
    ids.joinpath("_CLOUD_INIT").write_text("i-1")
    before = machine.identity(paths.state)
    ids.joinpath(name).write_text("ffffffffffffffffffffffffffffffff")
    assert machine.is_copy(paths.state)
    after = machine.identity(paths.state)
    assert after["machine"] != before["machine"]
    assert after["instance"] != before["instance"]


def test_an_id_that_appears_later_proves_no_copy(ids, paths):
    before = machine.identity(paths.state)
    ids.joinpath("_CLOUD_INIT").write_text("i-1")
    assert not machine.is_copy(paths.state)
    assert machine.identity(paths.state)["instance"] == before["instance"]


def test_containers_have_no_machine(ids, paths):
    """Their images may contain a machine id, which all containers of the image share."""
    ids.joinpath("container").touch()
    ids.joinpath("_BOARD").write_text("the host's")
    assert machine.identity(paths.state)["machine"] == ""
    assert machine.cloud_id() == ""
    ids.joinpath("_MACHINE_ID").write_text("another")
    assert not machine.is_copy(paths.state)


def test_a_local_provider_s_enrollment_has_no_instance_and_is_used(ids, paths):
    keep(paths.config, Config("http://127.0.0.1:1", "s", "s.key"))
    assert ensure_enrollment(paths) is not None
