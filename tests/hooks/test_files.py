"""Hooks that need no tool: file, hiera, the manifest of kubelet, the function of python, and the check of scripts."""

from __future__ import annotations

import hashlib
import json

import pytest

from stoker_agent.hook_contract import UNSUPPORTED


@pytest.mark.parametrize("hook", ["file"], indirect=True)
def test_a_file_has_its_content_mode_and_owner_and_only_differences_count(hook, tmp_path):
    path = tmp_path / "etc" / "app.conf"
    config = {"path": str(path), "template": "port=${port}\ncost=$$5\n", "mode": "0640"}
    first = hook.run(hook.entry(config, port=8080))
    assert (first.code, first.changed, first.items) == (0, True, [str(path)])
    assert path.read_text() == "port=8080\ncost=$5\n"
    assert path.stat().st_mode & 0o7777 == 0o640
    assert hook.run(hook.entry(config, port=8080)).changed is False
    path.chmod(0o600)
    path.write_text("port=1\ncost=$5\n")
    drift = hook.run(hook.entry(config, port=8080), mode="check")
    assert drift.changed is True
    assert "-port=1" in drift.stdout
    assert "+port=8080" in drift.stdout
    assert path.read_text().startswith("port=1"), "a check changes nothing"
    hook.run(hook.entry(config, port=8080))
    assert path.stat().st_mode & 0o7777 == 0o640


@pytest.mark.parametrize("hook", ["file"], indirect=True)
def test_undo_restores_the_content_that_the_first_run_replaced(hook, tmp_path):
    path = tmp_path / "motd"
    path.write_text("before\n")
    path.chmod(0o604)
    for text in ("one\n", "two\n"):
        hook.run(hook.entry({"path": str(path), "content": text}))
    assert path.read_text() == "two\n"
    assert hook.run(hook.entry({"path": str(path)}, deploy_action="DELETE")).changed is True
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("before\n", 0o604)
    fresh = tmp_path / "new"
    hook.run(hook.entry({"path": str(fresh), "content": "x"}))
    hook.run(hook.entry({"path": str(fresh)}), mode="undo")
    assert not fresh.exists()


@pytest.mark.parametrize("hook", ["file"], indirect=True)
def test_directories_links_and_absence(hook, tmp_path):
    folder, link = tmp_path / "a" / "b", tmp_path / "link"

    def changes(path, **settings):
        return hook.run({**hook.entry({"path": str(path), **settings}), "deployment_id": path.name}).changed

    assert changes(folder, state="directory", mode="0711") is True
    assert folder.stat().st_mode & 0o777 == 0o711
    assert changes(link, state="link", target=str(folder)) is True
    assert link.readlink() == folder
    assert changes(link, state="link", target=str(folder)) is False
    assert changes(link, state="absent") is True
    assert folder.is_dir()
    assert not link.is_symlink()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "needs the setting 'path'"),
        ({"path": "relative"}, "must be absolute"),
        ({"path": "/"}, "must be absolute"),
        ({"path": "/tmp/x", "state": "odd"}, "state must be one of"),
        ({"path": "/tmp/x", "mode": "9"}, "mode must be octal"),
        ({"path": "/tmp/x", "owner": "no-such-user"}, "no user"),
        ({"path": "/tmp/x", "state": "link"}, "needs the setting 'target'"),
        ({"path": "/tmp/x", "template": "$missing"}, "needs the input 'missing'"),
        ({"path": "/tmp/x", "content": "a", "checksum": hashlib.sha256(b"b").hexdigest()}, "does not have the SHA-256"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
@pytest.mark.parametrize("hook", ["file"], indirect=True)
def test_settings_that_make_no_file_are_refused_with_a_reason(hook, settings, reason):
    outcome = hook.run(hook.entry(settings))
    assert outcome.code == 1
    assert reason in outcome.report["deploy_status_reason"]


@pytest.mark.parametrize("hook", ["hiera"], indirect=True)
def test_data_for_puppet_is_written_once_and_not_beside_that_of_os_apply_config(hook, tmp_path):
    data, top = tmp_path / "hieradata", tmp_path / "hiera.yaml"
    hook.environment.update(HEAT_PUPPET_HIERA_DATADIR=str(data), HEAT_HIERA_CONFIG=str(top))
    config = {"hierarchy": ["node", "common"], "datafiles": {"common": {"x": 1}}}
    assert hook.run(hook.entry(config)).changed is True
    assert hook.run(hook.entry(config)).changed is False
    hook.tool("os-apply-config", "#!/bin/sh\necho '{\"legacy\": 1}'\n")
    assert "os-apply-config manages hieradata" in hook.run(hook.entry(config)).report["deploy_status_reason"]


@pytest.mark.parametrize("hook", ["kubelet"], indirect=True)
def test_a_manifest_is_replaced_in_one_step(hook, tmp_path):
    """A kubelet may read it at any time."""
    hook.tool("docker", "#!/bin/sh\n")
    manifests = tmp_path / "manifests"
    hook.environment["HEAT_KUBELET_MANIFESTS"] = str(manifests)
    entry = hook.entry({"containers": []})
    assert hook.run(entry).changed is True
    (manifest,) = manifests.iterdir()
    assert manifest.stat().st_mode & 0o777 == 0o600
    manifest.write_text(old := '{"containers": [1]}')
    with manifest.open() as reader:
        assert hook.run(entry).changed is True
        assert reader.read() == old, "a reader has the whole former manifest"
    assert json.loads(manifest.read_text()) == {"containers": []}
    assert list(manifests.iterdir()) == [manifest]


@pytest.mark.parametrize("hook", ["python"], indirect=True)
def test_a_function_receives_the_inputs_and_returns_the_outputs(hook):
    source = """
def main(inputs):
    print("live", flush=True)
    return {"sum": inputs["a"] + inputs["b"], "deploy_changed": True}
"""
    outcome = hook.run(hook.entry(source, a=2, b=3))
    assert (outcome.code, outcome.changed, outcome.report["sum"], outcome.stdout) == (0, True, 5, "live\n")
    assert hook.run(hook.entry(source, a=2, b=3)).report["sum"] == 5
    failed = hook.run(hook.entry("def main(inputs):\n    raise RuntimeError('too bad')\n"))
    assert failed.code == 1
    assert "RuntimeError: too bad" in failed.stderr
    assert "must define the function main" in hook.run(hook.entry("x = 1")).stderr
    assert "must return a dict" in hook.run(hook.entry("def main(inputs): return 5")).report["deploy_status_reason"]


@pytest.mark.parametrize(
    ("check", "code", "changed", "diff"),
    [
        ("exit 0", 0, False, None),
        ('echo "$who differs"; exit 1', 0, True, "world differs\n"),
        ("#!/bin/bash\n[[ $who == world ]]", 0, False, None),
        ("exit 2", 2, None, None),
        ("no-such-command", 127, None, None),
        (None, UNSUPPORTED, None, None),
        ("", UNSUPPORTED, None, None),
    ],
)
@pytest.mark.parametrize("hook", ["script"], indirect=True)
def test_the_exit_code_of_the_option_check_is_the_state(hook, tmp_path, check, code, changed, diff):
    options = {} if check is None else {"check": check}
    entry = hook.entry(f"touch {tmp_path}/applied", options=options, who="world")
    outcome = hook.run(entry, "check")
    assert (outcome.code, outcome.changed) == (code, changed)
    assert [change.get("diff") for change in outcome.report.get("deploy_changes", ())] == ([diff] if diff else [])
    assert not tmp_path.joinpath("applied").exists(), "a check does not apply the config"
