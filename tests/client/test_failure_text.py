"""Why a run failed, in a few words."""

import pytest

from stoker_client.results import failure_text

CODE = "deploy_status_code : Deployment exited with non-zero status code: 127"
PATH = "/var/lib/heat-config/heat-config-script/0ab31c5e-0c4e-4a55-9a3e-2b1d6f7c8e90/script"


@pytest.mark.parametrize(
    ("reason", "outputs", "text"),
    [
        (CODE, {}, "exit 127"),
        (CODE, {"deploy_stderr": f"a\n{PATH}: 7: no: not found\n\n"}, "exit 127: script: 7: no: not found"),
        (f"Interrupted: the agent stopped, {CODE}", {}, "exit 127: Interrupted: the agent stopped"),
        (f"Resource CREATE failed: Error: resources.g[1]: Deployment to server failed: {CODE}", {}, "exit 127"),
        ("Error: resources.a: No hook for group 'x' on this server", {}, "No hook for group 'x' on this server"),
        (f"Error: resources.g: Deployment to server failed: {CODE} on web1", {}, "exit 127 on web1"),
        (f"{CODE} on web1: no: not found", {"deploy_stderr": "no: not found"}, "exit 127 on web1: no: not found"),
        (f"{CODE}; brought back: b", {}, "exit 127: brought back: b"),
        (f"{CODE} on web1: gone; brought back: b", {}, "exit 127 on web1: gone; brought back: b"),
        (f"x is missing, {CODE}", {"deploy_stderr": "x is missing"}, "exit 127: x is missing"),
        (f"{CODE}, error : no space", {"deploy_stderr": ""}, "exit 127: error : no space"),
        (None, {"deploy_status_code": 0}, "no reason given"),
        (None, {"deploy_status_code": "3"}, "exit 3"),
        ("Outputs\nreceived", None, "Outputs received"),
    ],
)  # fmt: skip
def test_failure_text(reason, outputs, text):
    assert failure_text(reason, outputs) == text
