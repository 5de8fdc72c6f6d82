"""Which sources an agent has: from its words, from a file, and from documents."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from stoker_agent.config import Unusable
from stoker_agent.settings import Settings, keep, parse_list, read_ini, settings, take_over

CFN = {
    "metadata_url": "http://heat/v1/",
    "access_key_id": "a",
    "secret_access_key": "s",
    "stack_name": "stack",
    "path": "server.Metadata",
}
REQUEST = {"metadata_url": "http://store/v1/AUTH_p/c/o?temp_url_sig=x"}
HEAT = {
    "auth_url": "http://key/v3",
    "user_id": "u",
    "password": "pw",
    "project_id": "p",
    "stack_id": "stack/1",
    "resource_name": "server",
}
INI = """
# written by an image
[DEFAULT]
collectors = ec2
collectors = cfn, local
polling-interval = 5

[cfn]
metadata_url = http://heat/v1/
access_key_id = a
secret_access_key : s
stack_name = stack
path = server.Metadata
 other.Metadata
ca_certificate = /ca.pem
a line of nothing
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sources.json"


def file(tmp_path: Path, text: str) -> Path:
    made = tmp_path / "os-collect-config.conf"
    made.write_text(text)
    return made


def taken(known: Settings, collect: dict[str, Any], *, enrolled: bool = False) -> Settings:
    return take_over(known, collect, enrolled=enrolled)


def of(*order: str, **sections: Any) -> Settings:
    return Settings(order, {name: dict(section) for name, section in sections.items()})


def test_an_agent_without_options_uses_stokers_source_or_names_the_remedy(path):
    assert settings(path, enrolled=True).order == ("stoker",)
    with pytest.raises(Unusable, match="stoker-agent enroll"):
        settings(path, enrolled=False)


def test_an_ini_file_of_os_collect_config_with_lists_of_both_kinds(path, tmp_path):
    options = file(tmp_path, INI)
    found = settings(path, os_collect_config=options, enrolled=False)
    assert parse_list(read_ini(INI)["DEFAULT"]["collectors"]) == ["ec2", "cfn", "local"]
    assert (found.usable(False), found.usable(True), found.polling) == (["cfn"], ["stoker", "cfn"], 5.0)
    paths = ["server.Metadata", "other.Metadata"]
    assert found.sections["cfn"] == {**CFN, "path": paths, "ca_certificate": "/ca.pem"}
    keep(path, found)
    again = settings(path, os_collect_config=options, enrolled=True)  # it was enrolled later
    assert again.usable(True) == ["stoker", "cfn"]


def test_a_settings_file_may_be_metadata(path, tmp_path):
    said = {"os-collect-config": {"collectors": ["ec2", "cfn", "local"], "cfn": CFN, "heat": None}, "deployments": []}
    found = settings(path, enrolled=False, os_collect_config=file(tmp_path, json.dumps(said)))
    assert (found.usable(False), found.sections) == (["cfn"], {"cfn": CFN})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (text, "none of the sources")
        for text in ('{"os-collect-config": 5}', "[cfn]\npath = x\n", "", "[[[", '{"cfn": 5}')
    ]
    + [("{", "cannot be read"), (None, "cannot read")],
)
def test_a_settings_file_without_sources_is_refused(path, tmp_path, text, reason):
    given = tmp_path / "none" if text is None else file(tmp_path, text)
    with pytest.raises(Unusable, match=reason):
        settings(path, enrolled=False, os_collect_config=given)


def test_the_option_gives_the_order_of_the_sources(path, tmp_path):
    text = INI + "[request]\nmetadata_url = http://store/\n"
    options, order = file(tmp_path, text), ("request", "stoker", "heat", "cfn")
    assert settings(path, enrolled=True, sources=order, os_collect_config=options).order == ("request", "stoker", "cfn")
    found = settings(path, enrolled=False, sources=order, os_collect_config=options)
    assert found.usable(False) == ["request", "cfn"]
    assert set(settings(path, enrolled=True, sources=("cfn",), os_collect_config=options).sections) == {"cfn"}


def test_an_unknown_source_is_refused(path):
    with pytest.raises(Unusable, match="no such source: carrier-pigeon"):
        settings(path, enrolled=True, sources=("carrier-pigeon",))


@pytest.mark.parametrize(("said", "kept"), [(0.001, 0.2), (1.5, 1.5), (900.0, 30.0), (float("nan"), 30.0)])
def test_the_interval_has_bounds(path, said, kept):
    assert settings(path, enrolled=True, polling=said).polling == kept


def test_adopted_settings_are_kept_for_the_next_start_with_the_same_options(path, tmp_path):
    options = file(tmp_path, INI)
    now = taken(settings(path, os_collect_config=options, enrolled=False), {"cfn": dict.fromkeys(CFN), "heat": HEAT})
    keep(path, now)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert settings(path, os_collect_config=options, enrolled=False) == now
    assert settings(path, enrolled=False) == now
    options.write_text(INI + "# another content\n")
    assert settings(path, os_collect_config=options, enrolled=False).usable(False) == ["cfn"]


@pytest.mark.parametrize("text", ["", "[]", "5", "{}", '{"order": 5, "sections": {}}', '{"order": [], "sections": 5}'])
def test_kept_settings_that_are_damaged_are_named(path, text):
    path.write_text(text)
    with pytest.raises(Unusable, match=r"cannot read .*sources\.json"):
        settings(path, enrolled=True)


NONE = dict.fromkeys(CFN)
ORDERS = [
    (of("cfn", cfn=CFN), {"collectors": ["heat", "local"], "heat": HEAT, "cfn": NONE}, "heat"),
    (of("stoker", "cfn", cfn=CFN), {"collectors": ["request"], "request": REQUEST}, "stoker request cfn"),
    (of("cfn", "stoker", cfn=CFN), {"collectors": ["request"], "request": REQUEST}, "request cfn stoker"),
    (of("request", "cfn", request=REQUEST, cfn=CFN), {"collectors": ["cfn"], "cfn": CFN}, "request cfn"),
    (of("cfn", cfn=CFN), {"cfn": NONE}, "cfn"),
    (of("stoker", "cfn", cfn=CFN), {"cfn": NONE}, "stoker cfn"),
]


@pytest.mark.parametrize(("known", "collect", "order"), ORDERS, ids=[order for _, _, order in ORDERS])
def test_new_sources_of_a_document_precede_those_that_stay_and_never_is_none_left(known, collect, order):
    now = taken(known, collect)
    assert now.order == tuple(order.split())
    sections = {"cfn": CFN, "heat": HEAT, "request": REQUEST}
    assert now.sections == {name: sections[name] for name in now.order if name in sections}


def test_a_document_may_remove_all_sources_but_stokers():
    assert taken(of("stoker", "cfn", cfn=CFN), {"cfn": NONE}, enrolled=True) == of("stoker")


def test_local_keys_of_a_section_survive_a_change_of_the_section():
    known = of("cfn", cfn={**CFN, "ca_certificate": "/ca.pem", "timeout": "3"})
    now = taken(known, {"cfn": {**CFN, "secret_access_key": "new"}})
    assert now.sections["cfn"] == {**CFN, "secret_access_key": "new", "ca_certificate": "/ca.pem", "timeout": "3"}


@pytest.mark.parametrize(
    "collect",
    [
        {},
        {"collectors": 5},
        {"collectors": [5, None, ["cfn"], "pigeon"]},
        {"cfn": None},
        {"cfn": []},
        {"cfn": {}},
        {"heat": {"auth_url": "http://key"}},
        {"heat": {**HEAT, "password": None}},
        {"heat": "text", "zaqar": 7, "command": "rm"},
    ],
)
def test_invalid_sections_change_nothing(collect):
    known = of("cfn", cfn=CFN)
    assert taken(known, collect) == known
