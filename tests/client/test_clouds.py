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


#: The entries of clouds.yaml, or its text; the command's words; and the beginning of the error.
UNUSABLE = [
    (("one", "two"), (), "stoker: no cloud is chosen; set OS_CLOUD to one of: one, two\n"),
    (("one",), ("--os-cloud", "nope"), "stoker: no clouds.yaml has a cloud 'nope'; run `stoker serve`"),
    ("clouds: [", (), "stoker: "),
]


@pytest.mark.parametrize(("clouds", "words", "error"), UNUSABLE)
def test_without_a_usable_choice_the_error_is_one_line(stoker, write_clouds, nowhere, clouds, words, error):
    write_clouds(**({name: entry() for name in clouds} if isinstance(clouds, tuple) else {}))
    if isinstance(clouds, str):
        (nowhere / "clouds.yaml").write_text(clouds)

    result = stoker(*words, "stack", "list")

    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(error)


def test_without_a_configuration_the_error_names_the_remedy(nowhere, spawn):
    with pytest.raises(NotConfigured, match="no cloud"):
        connect("nope")
    out, err = spawn("-m", "stoker_client.cli.main", "stack", "list").communicate(timeout=60)

    assert out == ""
    assert err.startswith("stoker: no cloud is configured; run `stoker serve`")
    assert "OS_CLOUD" in err
    assert err.count("\n") == 1


def test_an_incomplete_login_is_an_error(stoker, nowhere, monkeypatch):
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:1/identity/v3")

    result = stoker("stack", "list")

    assert (result.code, result.err.count("\n")) == (6, 1)
    assert result.err.startswith("stoker: ")
