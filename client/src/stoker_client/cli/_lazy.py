"""Groups that find commands by their files and entry points, and import only the command that runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from stoker_client.errors import ClientError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of installed packages."""
    # imported here because it takes a fifth of the start-up, and built-in commands do not need it
    from importlib.metadata import entry_points as read

    return read(group=group)


#: Longest help text of a command in the list of a group; a longer one is cut.
_SHORT = 200


@dataclass(frozen=True)
class Found:
    """A command's file and its loader."""

    file: Path | None
    load: Callable[[], click.Command]

    def short_help(self) -> str:
        """Return the first line of the file's docstring, without executing the file."""
        return (_docstring(self.file).splitlines() or [""])[0].rstrip(".") if self.file else ""


def _docstring(file: Path) -> str:
    try:
        return ast.get_docstring(ast.parse(file.read_bytes())) or ""
    except (OSError, SyntaxError, ValueError):
        return ""  # a broken add-on has no help; running it shows the error


class Group(click.Group):
    """A group whose commands are its own and, optionally, the entry points of ``entry_group``."""

    def __init__(
        self,
        *,
        entry_group: str = "",
        default: str | None = None,
        others: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> None:
        """
        ``default``: the command that receives words which begin with no command's name. ``others``: the commands of
        other distributions, which may not be installed, with the names of these.
        """
        super().__init__(no_args_is_help=True, **more)
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
        return sorted({*dict(self.find_commands()), *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command. A built-in command takes precedence over an entry point of the same name."""
        command = super().get_command(ctx, cmd_name)
        if command is None and (entry := dict(self.find_commands()).get(cmd_name)):
            command = entry.load()
        if command is not None and ctx.resilient_parsing:  # for the shell, which completes a command
            from stoker_client.cli._completion import add_names

            add_names(command)
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
        """Write the list of commands in the help text, without importing those of other files."""
        rows = {name: command.short_help() for name, command in self.find_commands()}
        rows |= {name: command.get_short_help_str(_SHORT).rstrip(".") for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))

    def find_commands(self) -> Iterator[tuple[str, Found]]:
        """Yield the commands that are not imported yet, by name."""
        if self._entry_group:
            for entry in entry_points(self._entry_group):
                yield entry.name, _from_entry(entry)


class RootGroup(Group):
    """The group of ``stoker`` itself: its commands are the modules of a package as well."""

    def __init__(self, *, package: str, folder: Path, **more: Any) -> None:
        super().__init__(**more)
        self._package = package
        self._folder = folder

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command. Entry points are read only for a name that no module has."""
        if cmd_name not in self.commands and (module := dict(self._find_modules()).get(cmd_name)):
            self.add_command(module.load(), cmd_name)
        return super().get_command(ctx, cmd_name)

    def find_commands(self) -> Iterator[tuple[str, Found]]:
        """Yield entry points first, so that a module of the same name replaces them."""
        yield from super().find_commands()
        yield from self._find_modules()

    def _find_modules(self) -> Iterator[tuple[str, Found]]:
        for path in self._folder.glob("*.py"):
            if not path.stem.startswith("_") and path.stem != "main":
                name = path.stem.replace("_", "-")
                yield name, Found(path, _Module(name, f"{self._package}.{path.stem}"))


@dataclass(frozen=True)
class _Module:
    """Loads the command of one module, whose docstring is the help text."""

    name: str
    module: str

    def __call__(self) -> click.Command:
        module = import_module(self.module)
        command: click.Command = module.command
        command.name = self.name
        command.help = command.help or module.__doc__
        return command


def _from_entry(entry: EntryPoint) -> Found:
    def load() -> click.Command:
        try:
            loaded = entry.load()
        except (ImportError, AttributeError) as problem:
            raise ClientError(f"cannot load the command {entry.name!r} ({entry.value}): {problem}") from problem
        return loaded if isinstance(loaded, click.Command) else PassThrough(entry.name, loaded)

    return Found(_file_of(entry.module), load)


def _file_of(module: str) -> Path | None:
    """Return a module's file. ``importlib.util.find_spec`` would import the packages that contain it."""
    path: list[str] | None = None
    name = ""
    spec = None
    for piece in module.split("."):
        name = f"{name}.{piece}" if name else piece
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or [])
    return Path(spec.origin) if spec and spec.origin else None


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
