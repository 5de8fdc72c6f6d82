"""Scripts: as in heat-agents, the script itself is the file ``$HEAT_SCRIPT_WORKING/<id of the config>``."""

from __future__ import annotations

from pathlib import Path

import pytest

GROUP = "script"
SHOW = (
    'test "$0" = "$HEAT_SCRIPT_WORKING/$id" && test -f "$0" && stat -c %a "$0"\n'
    'printf %s "$0" >"$heat_outputs_path.place"\n'
)


@pytest.mark.parametrize("interpreter", ["#!/bin/sh\n", ""], ids=["executable", "plain"])
def test_the_working_directory_contains_the_script_itself_under_the_id_of_the_config(hook, interpreter):
    entry = hook.entry(interpreter + SHOW, ["place"])
    entry["inputs"] = [{"name": "id", "type": "String", "value": entry["id"]}]
    outcome = hook.run(entry)
    assert (outcome.code, outcome.stdout) == (0, "700\n")
    place = Path(outcome.report["place"])
    assert place.name == entry["id"]
    assert place.read_text() == entry["config"]
