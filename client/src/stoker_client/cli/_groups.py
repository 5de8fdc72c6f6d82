"""Groups of commands that import a command only when it runs, from a module or an entry point, and complete names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from stoker_client.cli._session import Session
from stoker_client.errors import ClientError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from stoker_client.client import Client


#: Longest help text of a command in the list of a group; a longer one is cut.
_SHORT = 200
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Group(click.Group):
    """A group whose commands are its own, those of modules, and the entry points of ``entry_group``."""

    def __init__(
        self,
        *,
        modules: Mapping[str, tuple[str, str]] = _NOTHING,
        entry_group: str = "",
        default: str | None = None,
        others: Mapping[str, str] = _NOTHING,
        **more: Any,
    ) -> None:
        """
        ``modules``: the module of a command and its line in the list; the module has an object with the command's name.
        ``default``: the command that receives words which begin with no command's name. ``others``: the commands of
        other distributions, which may not be installed, with the names of these.
        """
        super().__init__(no_args_is_help=True, **more)
        self._modules = modules
        self._entry_group = entry_group
        self._default = default
        self._others = others

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command, if there is one, before words that do not begin with a command's name."""
        if self._default and args and args[0] not in (*ctx.help_option_names, *self.list_commands(ctx)):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self._read_entries(), *self._modules, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command. Entry points are read only for a name that this package has not."""
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in self._modules:
            module, line = self._modules[cmd_name]
            command = getattr(import_module(module), cmd_name.replace("-", "_"))
            command.name, command.help = cmd_name, command.help or f"{line}."
        if command is None and (entry := self._read_entries().get(cmd_name)):
            command = _load(entry)
        if command is not None and ctx.resilient_parsing:  # for the shell, which completes a command
            _complete_names(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names. Raises UsageError, with the remedy or the most similar name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if other := self._others.get(args[0]):
                remedy = f"It is part of {other}, which is not installed (pip install {other})."
                raise click.UsageError(f"{error.message} {remedy}", ctx) from None
            similar = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not similar:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{similar[0]}'?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in the help text, without importing those of other modules."""
        rows = {name: _first_line(entry.module) for name, entry in self._read_entries().items()}
        rows |= {name: line for name, (_, line) in self._modules.items()}
        rows |= {name: command.get_short_help_str(_SHORT).rstrip(".") for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))

    def _read_entries(self) -> Mapping[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(self._entry_group)} if self._entry_group else {}


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of installed packages."""
    # imported here because it takes a fifth of the start-up, and built-in commands do not need it
    from importlib.metadata import entry_points as read

    return read(group=group)


def _load(entry: EntryPoint) -> click.Command:
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as problem:
        raise ClientError(f"cannot load the command {entry.name!r} ({entry.value}): {problem}") from problem
    return loaded if isinstance(loaded, click.Command) else PassThrough(entry.name, loaded)


def _first_line(module: str) -> str:
    """Return the first line of a module's docstring without an import of the module itself."""
    try:
        spec = find_spec(module)
        source = spec.loader.get_source(module) if spec and isinstance(spec.loader, InspectLoader) else None
        docstring = ast.get_docstring(ast.parse(source or "")) or ""
    except Exception:
        return ""  # a broken add-on has no help; running it shows the error
    return docstring.partition("\n")[0].rstrip(".")


class PassThrough(click.Command):
    """Runs a separate program as a command: ``main(argv) -> exit code`` receives all arguments unchanged."""

    def __init__(self, name: str, program: Callable[[list[str]], int | None]) -> None:
        super().__init__(name, add_help_option=False)
        self._program = program

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments unchanged, including ``--help`` and ``--``."""
        ctx.args = list(args)
        return ctx.args

    def invoke(self, ctx: click.Context) -> None:
        """Run the program and exit with its code."""
        ctx.exit(self._program(ctx.args) or 0)


#: By metavar: the names that the service has.
_NAMES: Mapping[str, Callable[[Client], Iterable[str | None]]] = {
    "CONFIG": lambda client: (config["name"] for config in client.configs.all()),
    "CREDENTIAL": lambda client: (credential["name"] for credential in client.identity.credentials.all()),
    # Deployments without a stack have no names that are theirs alone.
    "DEPLOYMENT": lambda client: (
        f"{deployment['stack_name']}/{deployment['resource_name']}"
        for deployment in client.deployments.all()
        if deployment.get("resource_name")
    ),
    "ENROLLMENT": lambda client: (enrollment["id"] for enrollment in client.enrollments.all()),
    "PROJECT": lambda client: (project["name"] for project in client.identity.projects.all()),
    "RELAY": lambda client: (relay["name"] for relay in client.relays.all()),
    "SCHEDULE": lambda client: (schedule["name"] for schedule in client.schedules.all()),
    "SERVER": lambda client: (server["name"] for server in client.servers.all()),
    "STACK": lambda client: (stack["stack_name"] for stack in client.stacks.all()),
    "TRIGGER": lambda client: (trigger["name"] for trigger in client.triggers.all(limit=100)),
    "USER": lambda client: (user["name"] for user in client.identity.users.all()),
}


def _complete_names(command: click.Command) -> None:
    """Let the shell complete the names of objects in the command's arguments and options."""
    for param in command.params:
        metavar = (param.metavar or param.human_readable_name).strip("[].")
        if metavar in _NAMES:
            param.shell_complete = partial(_complete, metavar)  # type: ignore[method-assign]  # click's own hook


def _complete(metavar: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    session = ctx.find_object(Session)
    assert session is not None
    session.cloud = ctx.find_root().params.get("os_cloud")
    try:
        with ctx.scope(cleanup=False):
            names = {name for name in _NAMES[metavar](session.client) if name}
    except Exception:  # a shell has no place for an error: the command itself will show it
        return []
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]
