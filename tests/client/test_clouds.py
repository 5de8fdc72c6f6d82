"""Which cloud is used, and what is said when none can be."""

import os
from pathlib import Path

import pytest
import yaml

from client.site import Site
from stoker_client.client import connect
from stoker_client.errors import NotConfigured


def entry(site: Site | None = None) -> dict[str, object]:
    """The entry of a site in clouds.yaml, or of an address where nothing is."""
    variables = site.variables if site else {"OS_AUTH_URL": "http://127.0.0.1:1", "OS_PROJECT_ID": "p"}
    return {"auth": {name.removeprefix("OS_").lower(): value for name, value in variables.items()}}


@pytest.fixture
def write_clouds(nowhere: Path, monkeypatch):
    """Writes clouds.yaml and takes OS_* away, so that only the file counts."""

    def write(**clouds: object) -> None:
        for name in [name for name in os.environ if name.startswith("OS_") and name != "OS_CLIENT_CONFIG_FILE"]:
            monkeypatch.delenv(name)
        (nowhere / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))

    return write


def test_the_environment_chooses_also_beside_the_cloud_stoker(site, stoker, nowhere):
    assert stoker("stack", "list").code == 0
    (nowhere / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"stoker": entry()}}))
    assert stoker("stack", "list").code == 0


@pytest.mark.parametrize(
    ("usable", "others", "variable", "words"),
    [
        ("stoker", ("other",), None, ("stack", "list")),  # the default
        ("other", (), None, ("stack", "list")),  # the only one
        ("other", ("stoker",), "other", ("stack", "list")),
        ("other", ("stoker",), "stoker", ("--os-cloud", "other", "stack", "list")),
        ("other", ("stoker",), "stoker", ("stack", "--os-cloud=other", "list")),
        ("other", ("stoker",), "stoker", ("stack", "list", "-o", "name", "--os-cloud", "other")),
    ],
)
def test_an_entry_of_the_file_is_chosen(site, stoker, write_clouds, monkeypatch, usable, others, variable, words):
    write_clouds(**{usable: entry(site)}, **{name: entry() for name in others})
    if variable is not None:
        monkeypatch.setenv("OS_CLOUD", variable)

    assert stoker(*words).code == 0


def test_several_entries_without_a_choice_are_an_error(stoker, write_clouds):
    write_clouds(one=entry(), two=entry())

    result = stoker("stack", "list")

    assert (result.code, result.out) == (1, "")
    assert result.err == "stoker: no cloud is chosen; set OS_CLOUD to one of: one, two\n"


def test_an_unknown_cloud_is_an_error(stoker, write_clouds):
    write_clouds(one=entry())

    result = stoker("--os-cloud", "nope", "stack", "list")

    assert result.err.startswith("stoker: no clouds.yaml has a cloud 'nope'; run `stoker serve`")


def test_a_broken_file_is_a_one_line_error(stoker, write_clouds, nowhere):
    (nowhere / "clouds.yaml").write_text("clouds: [")

    result = stoker("stack", "list")

    assert result.code == 1
    assert result.err.startswith("stoker: ")
    assert result.err.count("\n") == 1


def test_without_a_configuration_the_error_names_the_remedy(nowhere, spawn):
    out, err = spawn("-m", "stoker_client.cli.main", "stack", "list").communicate(timeout=60)

    assert out == ""
    assert err.startswith("stoker: no cloud is configured; run `stoker serve`")
    assert "OS_CLOUD" in err
    assert err.count("\n") == 1


def test_an_incomplete_login_is_an_error(stoker, nowhere, monkeypatch):
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:1/identity/v3")

    result = stoker("stack", "list")

    assert result.code == 6
    assert result.err.startswith("stoker: ")
    assert result.err.count("\n") == 1


def test_the_library_raises_the_same_error(write_clouds):
    write_clouds()

    with pytest.raises(NotConfigured, match="no cloud"):
        connect("nope")
