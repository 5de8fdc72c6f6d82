"""The check of the hook for scripts: the option ``check`` decides."""

from __future__ import annotations

import pytest

from stoker_agent.hook_contract import UNSUPPORTED

GROUP = "script"


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
def test_the_exit_code_of_the_option_check_is_the_state(hook, tmp_path, check, code, changed, diff):
    options = {} if check is None else {"check": check}
    entry = hook.entry(f"touch {tmp_path}/applied", options=options, who="world")
    outcome = hook.run(entry, "check")
    assert (outcome.code, outcome.changed) == (code, changed)
    assert [change.get("diff") for change in outcome.report.get("deploy_changes", ())] == ([diff] if diff else [])
    assert not tmp_path.joinpath("applied").exists(), "a check does not apply the config"
