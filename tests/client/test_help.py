"""Finding commands without importing them."""

import json
import re
from importlib.metadata import EntryPoint

import click
import pytest

from stoker_client.cli import _groups
from stoker_client.cli.main import COMMANDS
from stoker_client.cli.main import stoker as root

RESULTS = ("create", "update", "list", "show", "logs", "output", "history", "set", "label", "policy")
HEAVY = {"openstack", "keystoneauth1", "requests", "rich", "yaml"}
#: The commands of this package, without those of other distributions.
OWN = sorted({*COMMANDS, *root.commands})


def modules_after(spawn, *args: str) -> set[str]:
    code = (
        "import json, sys\n"
        "from stoker_client.cli.main import main\n"
        f"main({list(args)!r})\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    out, err = spawn("-c", code).communicate(timeout=60)
    assert err == ""
    return set(json.loads(out.splitlines()[-1]))


@pytest.mark.parametrize(
    "args",
    [["--help"], ["stack", "--help"], ["deployment", "--help"], ["trigger", "--help"], ["--version"], ["version"]],
)
def test_help_imports_nothing_heavy_and_no_other_command(spawn, args):
    loaded = modules_after(spawn, *args)

    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
    assert {
        name for name in loaded if name.startswith("stoker_client.cli.") and not name.rpartition(".")[2].startswith("_")
    } <= {"stoker_client.cli.main", f"stoker_client.cli.{args[0]}"}


@pytest.mark.parametrize("group", ["stack", "server"])
def test_help_of_a_command_does_not_load_the_sdk(spawn, group):
    loaded = modules_after(spawn, group, "list", "--help")

    assert {name.partition(".")[0] for name in loaded} & {"openstack", "keystoneauth1", "requests", "rich"} == set()


def test_help_lists_every_command_with_a_line(stoker):
    shown = stoker("--help").out

    for name in OWN:
        [line] = [line for line in shown.splitlines() if line.startswith(f"  {name} ")]
        assert len(line.split()) > 3


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_their_help(name):
    command = root.get_command(click.Context(root), name)
    assert command.get_short_help_str(200).rstrip(".") == COMMANDS[name][1]


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context = click.Context(group)
    found = []
    for name in group.list_commands(context):
        if path or name in OWN:
            command = group.get_command(context, name)
            found.append((*path, name))
            if isinstance(command, click.Group):
                found += commands(command, (*path, name))
    return found


@pytest.mark.parametrize("path", commands(root), ids=" ".join)
def test_every_command_has_help(stoker, path):
    result = stoker(*path, "--help")

    assert result.code == 0
    usage, purpose, *_ = result.out.split("\n\n")
    assert usage.startswith(f"Usage: stoker {' '.join(path)}")
    assert purpose.strip() and not purpose.startswith("Options:"), "the command has no docstring"


@pytest.mark.parametrize("path", [p for p in commands(root) if p[-1] in set(RESULTS)])
def test_every_command_with_a_result_has_the_output_option(stoker, path):
    forms = "[table|json|yaml]" if path[-1] == "logs" else "[table|wide|json|yaml|csv|name|value]"
    assert forms in stoker(*path, "--help").out


def program(argv: list[str]) -> int:
    """Stands for the agent: a plain function behind an entry point."""
    click.echo(repr(argv))
    return len(argv)


@click.command()
def native() -> None:
    """Stands for the server's commands: a click command behind an entry point."""
    click.echo("native")


@pytest.fixture
def add_ons(monkeypatch, tmp_path):
    """Entry points of other packages, as metadata would give them."""
    package = tmp_path / "addon"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "late.py").write_text('"""Come late.\n\nAnd more."""\nraise RuntimeError("imported")\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    found = [
        EntryPoint("native", f"{__name__}:native", "stoker.commands"),
        EntryPoint("program", f"{__name__}:program", "stoker.commands"),
        EntryPoint("late", "addon.late:command", "stoker.commands"),
        EntryPoint("gone", "no_such_package.module:command", "stoker.commands"),
        EntryPoint("run", "no_such_package.module:command", "stoker.commands"),
    ]
    monkeypatch.setattr(_groups, "entry_points", lambda group: found if group == "stoker.commands" else [])


def test_add_ons_are_listed_by_their_docstring_without_import(stoker, add_ons):
    shown = stoker("--help").out

    assert re.search(r"^  late +Come late$", shown, re.MULTILINE)
    assert "  gone" in shown


def test_an_add_on_may_be_a_click_command(stoker, add_ons):
    assert stoker("native").out == "native\n"


def test_an_add_on_may_be_a_program_that_gets_all_its_arguments(stoker, add_ons):
    result = stoker("program", "--help", "-x", "--", "--", "y")

    assert result.out == "['--help', '-x', '--', '--', 'y']\n"
    assert result.code == 5


def test_an_add_on_that_is_missing_says_so(stoker, add_ons):
    result = stoker("gone")

    assert result.code == 1
    assert result.err.startswith("stoker: cannot load the command 'gone'")


def test_our_commands_win_over_add_ons(stoker, add_ons):
    assert stoker("run", "--help").code == 0


def test_an_unknown_command_is_a_usage_error(stoker):
    result = stoker("nope")

    assert result.code == 2
    assert "No such command 'nope'" in result.err
    assert "No such command 'lst'. Did you mean 'list'?" in stoker("stack", "lst").err


def test_help_lists_the_exit_codes(stoker):
    shown = stoker("--help").out

    assert re.search(r"^ +2  the command line", shown, re.MULTILINE)
    assert re.search(r"^ +124  the time to wait is over", shown, re.MULTILINE)


def test_version(stoker):
    assert stoker("version").out.startswith("stoker ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(stoker, shell):
    assert "_STOKER_COMPLETE" in stoker("completion", shell).out


def complete(spawn, monkeypatch, line: str) -> list[str]:
    """What bash offers for the last word of ``line``."""
    words = line.split(" ")
    for name, value in (
        ("_STOKER_COMPLETE", "bash_complete"), ("COMP_WORDS", line), ("COMP_CWORD", str(len(words) - 1))
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    out, err = spawn("-m", "stoker_client.cli.main").communicate(timeout=60)
    assert err == ""
    return [item.removeprefix("plain,") for item in out.split()]


def test_bash_completion_completes_commands_and_options(spawn, monkeypatch):
    assert complete(spawn, monkeypatch, "stoker server l") == ["label", "list"]
    assert complete(spawn, monkeypatch, "stoker server show --out") == ["--output"]


def test_bash_completion_completes_names(spawn, monkeypatch, site):
    for name in ("web1", "web2", "db1"):
        site.add_agent(name)

    assert complete(spawn, monkeypatch, "stoker server show w") == ["web1", "web2"]
    assert complete(spawn, monkeypatch, "stoker deployment list --server d") == ["db1"]
    assert complete(spawn, monkeypatch, "stoker run w") == ["web1", "web2"]


def test_bash_completion_is_silent_without_a_service(spawn, monkeypatch):
    monkeypatch.setenv("OS_CLOUD", "nowhere")

    assert complete(spawn, monkeypatch, "stoker server show w") == []
