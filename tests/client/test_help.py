"""Finding commands without importing them."""

import json
import re
from importlib.metadata import EntryPoint

import click
import pytest

from stoker_client.cli import _groups
from stoker_client.cli.main import COMMANDS
from stoker_client.cli.main import stoker as root

RESULTS = ("create", "update", "list", "show", "logs", "output", "history", "set", "policy")
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


def test_help_lists_every_command_and_the_exit_codes(stoker):
    shown = stoker("--help").out

    for name in OWN:
        [line] = [line for line in shown.splitlines() if line.startswith(f"  {name} ")]
        assert len(line.split()) > 3
    assert re.search(r"^ +2  the command line", shown, re.MULTILINE)
    assert re.search(r"^ +124  the time to wait is over", shown, re.MULTILINE)
    assert stoker("version").out.startswith("stoker ")


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


def test_add_ons_are_click_commands_or_programs_that_get_all_their_arguments(stoker, add_ons):
    shown = stoker("--help").out
    assert re.search(r"^  late +Come late$", shown, re.MULTILINE), "the docstring without an import"
    assert "  gone" in shown
    assert stoker("native").out == "native\n"
    program = stoker("program", "--help", "-x", "--", "--", "y")
    assert (program.out, program.code) == ("['--help', '-x', '--', '--', 'y']\n", 5)
    gone = stoker("gone")
    assert (gone.code, gone.err.startswith("stoker: cannot load the command 'gone'")) == (1, True)
    assert stoker("run", "--help").code == 0, "the command of this package wins"


def test_an_unknown_command_is_a_usage_error(stoker):
    result = stoker("nope")

    assert (result.code, "No such command 'nope'" in result.err) == (2, True)
    assert "No such command 'lst'. Did you mean 'list'?" in stoker("stack", "lst").err


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


def test_bash_completion_completes_commands_options_and_names(spawn, monkeypatch, site):
    assert complete(spawn, monkeypatch, "stoker server l") == ["label", "list"]
    assert complete(spawn, monkeypatch, "stoker server show --out") == ["--output"]
    for name in ("web1", "web2", "db1"):
        site.add_agent(name)

    assert complete(spawn, monkeypatch, "stoker server show w") == ["web1", "web2"]
    assert complete(spawn, monkeypatch, "stoker deployment list --server d") == ["db1"]
    assert complete(spawn, monkeypatch, "stoker run w") == ["web1", "web2"]
    monkeypatch.setenv("OS_CLOUD", "nowhere")
    assert complete(spawn, monkeypatch, "stoker server show w") == [], "silent without a service"
