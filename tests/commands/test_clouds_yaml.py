"""clouds.yaml is the user's own file: our entry goes in, and nothing else changes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.commands import clouds_yaml
from support.search import examples

pytestmark = pytest.mark.slow

LOGIN = {
    "auth_url": "http://127.0.0.1:8004/identity/v3",
    "username": "admin",
    "password": "pw",
    "project_name": "default",
}
WANTED = clouds_yaml.entry(LOGIN)
CHANGED = clouds_yaml.entry({**LOGIN, "password": "new: 'odd' #one"})
STATE = Path("/var/lib/stoker state")

OTHERS = """\
# my clouds
---
cache:
    expiration_time: 3600   # seconds

clouds:
    # the one at work
    work:
        auth: {auth_url: 'https://cloud.example.org', username: me}   # in one line
        region_name:    "North"

    # and the other
    home:
        auth:
            auth_url: http://192.0.2.1
trailing: [1, 2]
"""


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "openstack" / "clouds.yaml"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir()
    path.write_text(text)
    return path


def offer(path: Path, wanted=WANTED, state: Path = STATE) -> str:
    return clouds_yaml.offer(path, wanted, state)


def lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def is_within(lines: list[str], others: list[str]) -> bool:
    """In order, each as it was."""
    rest = iter(others)
    return all(line in rest for line in lines)


def test_a_new_clouds_yaml_is_readable_only_by_its_owner(path):
    assert "OS_CLOUD=stoker" in offer(path)
    assert yaml.safe_load(path.read_text()) == {"clouds": {"stoker": WANTED}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["clouds.yaml"]


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing yet\n", "cache: {a: 1}", "clouds:\n", "clouds:   # mine\n", "clouds:"]
)
def test_an_entry_is_added_to_a_file_without_clouds(path, text):
    offer(written(path, text))
    said = yaml.safe_load(path.read_text())
    assert said["clouds"] == {"stoker": WANTED}
    assert is_within([line for line in lines_of(text) if line.endswith("\n")], lines_of(path.read_text()))


def test_other_entries_and_comments_stay_byte_for_byte(path):
    offer(written(path, OTHERS))
    text = path.read_text()
    assert yaml.safe_load(text)["clouds"] == {**yaml.safe_load(OTHERS)["clouds"], "stoker": WANTED}
    assert is_within(lines_of(OTHERS), lines_of(text))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_only_stokers_entry_is_updated(path):
    offer(written(path, OTHERS))
    first = path.read_text()
    offer(path, CHANGED)
    text = path.read_text()
    assert yaml.safe_load(text)["clouds"]["stoker"] == CHANGED
    assert text.count("# written by stoker") == 1
    assert is_within(lines_of(OTHERS), lines_of(text))
    offer(path)
    assert path.read_text() == first


def test_a_current_entry_is_not_written_again(path):
    offer(path)
    before = path.stat()
    assert "has the entry" in offer(path)
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    "text",
    [
        "clouds: {work: {auth: {username: me}}}\n",
        "clouds: {}\n",
        "{clouds: {work: {}}}\n",
        '"clouds":\n  work: {}\n',
        "clouds:\n  {work: {}}\n",
        "clouds: &all\n  work: {}\n",
        "x: |\n  clouds:\n",
        "clouds:\n- a\n",
        "- clouds\n",
        "clouds: null\n",
        "text\n",
    ],
)
def test_a_file_in_another_style_stays_unchanged_or_valid(path, text):
    said = offer(written(path, text))
    if said.startswith("left"):
        assert path.read_text() == text
    else:
        before, after = yaml.safe_load(text), yaml.safe_load(path.read_text())
        assert after["clouds"] == {**(before.get("clouds") or {}), "stoker": WANTED}
        assert {**after, "clouds": None} == {**before, "clouds": None}


def test_a_file_in_flow_style_stays_unchanged(path):
    text = "clouds: {work: {auth: {username: me}}}\n"
    assert "left" in offer(written(path, text))
    assert path.read_text() == text


@pytest.mark.parametrize("entry", ["  stoker:\n    auth: {username: me}\n", "  stoker:\n", "  'stoker': {}\n"])
def test_an_entry_of_the_same_name_by_another_author_stays_unchanged(path, entry):
    text = f"clouds:\n{entry}  work: {{}}\n"
    said = offer(written(path, text))
    assert "another's" in said
    assert "stoker env" in said
    assert path.read_text() == text


def test_the_entry_of_another_installation_stays_unchanged(path):
    offer(path, CHANGED, Path("/srv/other"))
    before = path.read_text()
    assert "another's" in offer(path)
    assert path.read_text() == before


def test_a_marker_beside_another_authors_entry_is_ignored(path):
    text = f"# written by stoker serve for {STATE}\nclouds:\n  stoker:\n    auth: {{username: me}}\n"
    offer(written(path, text))
    assert yaml.safe_load(path.read_text())["clouds"]["stoker"] == {"auth": {"username": "me"}}


@pytest.mark.parametrize("data", [b"clouds: [unclosed", b"\xff\xfe\x00", b"clouds:\n\tx: 1\n", b"clouds: text\n"])
def test_an_unreadable_file_stays_unchanged(path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    assert "left" in offer(path)
    assert path.read_bytes() == data


def test_a_folder_of_that_name_stays_unchanged(path):
    path.mkdir(parents=True)
    assert "left" in offer(path)


def test_a_symbolic_link_is_followed_and_kept(path, tmp_path):
    real = tmp_path / "dotfiles.yaml"
    real.write_text(OTHERS)
    path.parent.mkdir()
    path.symlink_to(real)
    offer(path)
    assert path.is_symlink()
    assert yaml.safe_load(real.read_text())["clouds"]["stoker"] == WANTED


def test_dos_line_ends_are_kept(path):
    path.parent.mkdir()
    text = OTHERS.replace("\n", "\r\n").encode()
    path.write_bytes(text)
    offer(path)
    after = path.read_bytes()
    assert is_within(text.splitlines(keepends=True), after.splitlines(keepends=True))
    if after != text:
        assert yaml.safe_load(after)["clouds"]["stoker"] == WANTED


names = st.text("abcxyz-_ü", min_size=1, max_size=6).filter(lambda name: name != "stoker")
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
clouds = st.dictionaries(names, st.dictionaries(names, leaves | st.dictionaries(names, leaves), max_size=3), max_size=4)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    clouds=clouds,
    around=st.dictionaries(names, leaves, max_size=2),
    indent=st.integers(2, 6),
    flow=st.sampled_from([None, False]),
)
def test_only_stokers_entry_changes_in_any_file(tmp_path, clouds, around, indent, flow):
    path = tmp_path / "clouds.yaml"
    whole = {**around, "clouds": clouds, "z": 1}
    text = yaml.safe_dump(whole, indent=indent, sort_keys=False, allow_unicode=True, default_flow_style=flow)
    path.write_text(text)
    for wanted in (WANTED, CHANGED):
        said = offer(path, wanted)
        if said.startswith("left"):
            assert path.read_text() == text
            assert flow is None or not clouds
        else:
            # What the text says and not what was dumped: YAML folds line ends such as NEL to blanks.
            before = yaml.safe_load(text)
            assert yaml.safe_load(path.read_text()) == {**before, "clouds": {**before["clouds"], "stoker": wanted}}
            assert is_within(lines_of(text), lines_of(path.read_text()))
