"""What servers boot with, read by the real cloud-init."""

from __future__ import annotations

import email
import json
import subprocess
from pathlib import Path

import pytest

from stoker.types.user_data import HEAT_CFNTOOLS, RAW, SOFTWARE_CONFIG, build
from support.templates import config, define, template

pytestmark = pytest.mark.slow

METADATA = {"deployments": [], "os-collect-config": {"collectors": ["cfn", "local"], "cfn": {"path": "s.Metadata"}}}
MIXED = """\
Content-Type: multipart/mixed; boundary="=="
MIME-Version: 1.0

--==
Content-Type: text/cloud-config; charset="us-ascii"
Content-Disposition: attachment; filename="one.cfg"

#cloud-config
a: 1
--==
Content-Type: text/x-shellscript; charset="us-ascii"
Content-Disposition: attachment; filename="two.sh"

#!/bin/sh
echo two
--==--
"""


def boot(format: str, text: str = "", **more) -> str:
    return build(format, text, metadata=METADATA, public_url="https://stoker.example:8004", **more)


def parts(text: str) -> dict[str, tuple[str, str]]:
    """By filename: type and content."""
    found = email.message_from_string(text)
    assert found.get_content_type() == "multipart/mixed"
    return {
        each.get_filename() or "": (each.get_content_type(), each.get_payload(decode=True).decode())
        for each in found.get_payload()
    }


def test_raw_user_data_stays_unchanged_and_equal_user_data_is_equal_text() -> None:
    assert boot(RAW, "#!/bin/sh\nü") == "#!/bin/sh\nü"
    assert boot(SOFTWARE_CONFIG, MIXED) == boot(SOFTWARE_CONFIG, MIXED) != boot(SOFTWARE_CONFIG, "x")


def test_user_data_has_the_files_of_the_cfn_tools() -> None:
    found = parts(boot(HEAT_CFNTOOLS, "#!/bin/sh\necho mine"))
    assert list(found) == [
        "cloud-config",
        "boothook.sh",
        "part-handler.py",
        "cfn-userdata",
        "loguserdata.py",
        "cfn-init-data",
        "cfn-metadata-server",
        "cfn-boto-cfg",
    ]
    assert found["cfn-userdata"] == ("text/x-cfninitdata", "#!/bin/sh\necho mine")
    assert json.loads(found["cfn-init-data"][1]) == METADATA
    assert found["cfn-metadata-server"][1] == "https://stoker.example:8004/cfn/v1/"
    assert "is_secure = 1" in found["cfn-boto-cfg"][1]
    assert "cfn_region_endpoint = stoker.example\n" in found["cfn-boto-cfg"][1]


def test_parts_of_the_user_are_appended() -> None:
    found = parts(boot(SOFTWARE_CONFIG, MIXED))
    assert found["one.cfg"] == ("text/cloud-config", "#cloud-config\na: 1")
    assert found["two.sh"] == ("text/x-shellscript", "#!/bin/sh\necho two")
    assert "cfn-boto-cfg" not in found
    assert parts(boot(SOFTWARE_CONFIG, "#!/bin/sh\nü"))[""] == ("text/plain", "#!/bin/sh\nü")


def test_stokers_agent_is_installed_on_request() -> None:
    assert "stoker-agent.sh" not in parts(boot(SOFTWARE_CONFIG))
    kind, script = parts(boot(SOFTWARE_CONFIG, stoker_agent=True))["stoker-agent.sh"]
    assert kind == "text/x-shellscript"
    assert "https://stoker.example:8004/agent/v1/stoker-agent.pyz" in script
    assert "CERTIFICATE-----" not in script
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)


def test_ignition_writes_the_metadata_to_files() -> None:
    said = {"ignition": {"version": "2.2.0"}, "storage": {"files": [{"path": "/mine"}], "disks": []}}
    found = json.loads(boot(SOFTWARE_CONFIG, json.dumps(said)))
    assert [each["path"] for each in found["storage"]["files"]] == [
        "/mine",
        "/var/lib/heat-cfntools/cfn-init-data",
        "/var/lib/cloud/data/cfn-init-data",
    ]
    assert found["storage"]["disks"] == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ignition": 1}', "\0", "Content-Type: multipart/mixed\n\n--x"])
@pytest.mark.parametrize("format", [HEAT_CFNTOOLS, SOFTWARE_CONFIG])
def test_any_text_makes_a_message(format: str, text: str) -> None:
    assert json.loads(parts(boot(format, text))["cfn-init-data"][1]) == METADATA


def test_the_part_handler_writes_the_metadata_to_its_files(tmp_path, monkeypatch) -> None:
    source = parts(boot(SOFTWARE_CONFIG))["part-handler.py"][1]
    places: dict[str, object] = {}
    exec(compile(source, "part-handler.py", "exec"), places)
    places["PLACES"] = (str(tmp_path / "a"), str(tmp_path / "b" / "c"))
    handle = places["handle_part"]
    assert places["list_types"]() == ["text/x-cfninitdata"]
    handle(None, "__begin__", None, None)
    handle(None, "text/x-cfninitdata", "../cfn-init-data", '{"ü": 1}')
    handle(None, "text/x-cfninitdata", "cfn-userdata", b"#!/bin/sh\n")
    for place in places["PLACES"]:
        kept = Path(place) / "cfn-init-data"
        assert kept.read_text() == '{"ü": 1}'
        assert kept.stat().st_mode & 0o777 == 0o600
        assert (Path(place) / "cfn-userdata").stat().st_mode & 0o777 == 0o700


def test_a_server_shows_its_user_data(heat) -> None:
    resources = {
        "script": config("#!/bin/sh\necho from the config"),
        "server": define(
            "OS::Nova::Server",
            user_data={"get_resource": "script"},
            agent="stoker",
            software_config_transport="POLL_SERVER_CFN",
        ),
        "deployed": define("OS::Heat::DeployedServer", software_config_transport="POLL_TEMP_URL"),
    }
    outputs = {name: {"value": {"get_attr": [name, "user_data"]}} for name in ("server", "deployed")}
    stack = heat.create(template(resources, outputs=outputs))
    said = {name: parts(text) for name, text in heat.outputs(stack).items()}
    assert said["server"][""][1] == "#!/bin/sh\necho from the config"
    assert "stoker-agent.sh" in said["server"]
    assert json.loads(said["server"]["cfn-init-data"][1])["os-collect-config"]["collectors"] == ["ec2", "cfn", "local"]
    assert "metadata_url" in json.loads(said["deployed"]["cfn-init-data"][1])["os-collect-config"]["request"]
