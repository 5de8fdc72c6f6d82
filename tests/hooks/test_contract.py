"""Every built-in hook says what it is for, and what is missing; test_upstream_contract.py has the rest."""

from __future__ import annotations

import pytest

from stoker_agent.programs import list_builtin

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("hook", sorted(set(list_builtin()) - {"script", "reboot"}), indirect=True)
def test_a_tool_or_setting_that_is_missing_is_a_failure_with_its_reason(hook, tmp_path):
    hook.environment.update(PATH=str(tmp_path), HEAT_CFN_INIT_LAST_METADATA_DIR=str(tmp_path / "cfn"))
    hook.environment["HEAT_PUPPET_HIERA_DATADIR"] = str(tmp_path / "hiera")
    config = {
        "chef": "[]",
        "ansible": "- {}",
        "python": "x = 1",
        "kubelet": {"containers": [{"name": "a", "image": "b"}]},
    }
    outcome = hook.run(
        hook.entry(
            config.get(
                hook.group, 5 if hook.group in ("json-file", "hiera") else {"a": {}} if "docker" in hook.group else ""
            )
        ),
    )
    assert outcome.code != 0
    assert outcome.report.get("deploy_status_reason") or outcome.stderr
