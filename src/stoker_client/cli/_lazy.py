"""Groups that find commands by their files and entry points, and import only the command that runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
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


def _constant(file: Path, name: str) -> str | None:
    """Return the string that the file assigns to ``name``, without executing the file."""
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            return str(ast.literal_eval(node.value))
    return None


class LazyGroup(click.Group):
    """A group whose commands are the files of a folder, and optionally the entry points of a group."""

    def __init__(
        self, package: str, folder: Path, *, entry_group: str = "", default: str | None = None, **more: Any
    ) -> None:
        super().__init__(**more)
        self._package = package
        self._folder = folder
        self._entry_group = entry_group
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command, if there is one, before words that do not begin with a command's name."""
        if self._default and args and args[0] not in (*ctx.help_option_names, *self.list_commands(ctx)):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted."""
        return sorted({name for name, _ in self._find_commands()} | set(super().list_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command."""
        command = dict(_from_folder(self._package, self._folder)).get(cmd_name) or dict(self._find_commands()).get(
            cmd_name
        )
        return command.load() if command else super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names. Raises UsageError, with the most similar name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            similar = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not similar:
                raise
            raise click.UsageError(f"{error.message} Did you mean '{similar[0]}'?", ctx) from None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in the help text, without importing them."""
        rows = [(name, command.short_help()) for name, command in sorted(dict(self._find_commands()).items())]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _find_commands(self) -> Iterator[tuple[str, Found]]:
        """Yield entry points first, so that a built-in command of the same name replaces them."""
        if self._entry_group:
            for entry in entry_points(self._entry_group):
                yield entry.name, _from_entry(entry)
        yield from _from_folder(self._package, self._folder)


def _from_folder(package: str, folder: Path) -> Iterator[tuple[str, Found]]:
    for path in folder.iterdir():
        if path.stem.startswith("_") or path.stem == "main":
            continue
        name, module = path.stem.replace("_", "-"), f"{package}.{path.stem}"
        if path.suffix == ".py":
            yield name, Found(path, _Module(name, module, path))
        elif (path / "__init__.py").is_file():
            yield name, Found(path / "__init__.py", _Folder(name, module, path))


@dataclass(frozen=True)
class _Module:
    """Loads the command of one file."""

    name: str
    module: str
    file: Path

    def __call__(self) -> click.Command:
        command: click.Command = import_module(self.module).command
        command.name = self.name
        command.help = command.help or _docstring(self.file)
        return command


@dataclass(frozen=True)
class _Folder:
    """Creates the group of one folder."""

    name: str
    package: str
    folder: Path

    def __call__(self) -> click.Command:
        file = self.folder / "__init__.py"
        return LazyGroup(
            self.package,
            self.folder,
            entry_group=_constant(file, "ENTRY_GROUP") or "",
            default=_constant(file, "DEFAULT"),
            name=self.name,
            help=_docstring(file),
            no_args_is_help=True,
        )


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
