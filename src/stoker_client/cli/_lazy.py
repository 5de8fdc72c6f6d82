"""Groups that find their commands by looking at files and entry points, and import only the one that is run."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import click

from stoker_client.errors import ClientError


@dataclass(frozen=True)
class Found:
    """A command that exists: the file with its help, and how to get at it."""

    file: Path | None
    load: Callable[[], click.Command]

    def short_help(self) -> str:
        """The first line of the file's docstring, read without running the file."""
        return (_docstring(self.file).splitlines() or [""])[0].rstrip(".") if self.file else ""


def _docstring(file: Path) -> str:
    try:
        return ast.get_docstring(ast.parse(file.read_bytes())) or ""
    except (OSError, SyntaxError, ValueError):
        return ""  # a broken add-on still has a name, and says what is wrong when it is run


def _constant(file: Path, name: str) -> str | None:
    """The text that a file gives the name ``name``, read without running the file."""
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            return str(ast.literal_eval(node.value))
    return None


class LazyGroup(click.Group):
    """A group whose commands are the files of a folder and, when named, the entry points of a group."""

    def __init__(
        self, package: str, folder: Path, *, entry_group: str = "", default: str | None = None, **more: Any
    ) -> None:
        super().__init__(**more)
        self._package = package
        self._folder = folder
        self._entry_group = entry_group
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Words that begin with no command's name are the default command's, if there is one."""
        if self._default and args and args[0] not in (*ctx.help_option_names, *self.list_commands(ctx)):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in order."""
        return sorted({name for name, _ in self._found()} | set(super().list_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        found = dict(self._found()).get(cmd_name)
        return found.load() if found else super().get_command(ctx, cmd_name)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help text, written without importing a command."""
        rows = [(name, found.short_help()) for name, found in sorted(dict(self._found()).items())]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _found(self) -> Iterator[tuple[str, Found]]:
        """Entry points first, so that our own commands win a clash of names."""
        if self._entry_group:
            for entry in entry_points(group=self._entry_group):
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
    """Makes the group of one folder."""

    name: str
    package: str
    folder: Path

    def __call__(self) -> click.Command:
        file = self.folder / "__init__.py"
        return LazyGroup(
            self.package,
            self.folder,
            default=_constant(file, "DEFAULT"),
            name=self.name,
            help=_docstring(file),
            no_args_is_help=True,
        )


def _from_entry(entry: EntryPoint) -> Found:
    def load() -> click.Command:
        try:
            made = entry.load()
        except (ImportError, AttributeError) as problem:
            raise ClientError(f"cannot load the command {entry.name!r} ({entry.value}): {problem}") from problem
        return made if isinstance(made, click.Command) else PassThrough(entry.name, made)

    return Found(_file_of(entry.module), load)


def _file_of(module: str) -> Path | None:
    """Where a module is. ``importlib.util.find_spec`` would import the packages around it."""
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
    """A program of its own behind one of our names: ``main(argv) -> exit code`` gets every argument untouched."""

    def __init__(self, name: str, program: Callable[[list[str]], int | None]) -> None:
        super().__init__(name, add_help_option=False)
        self._program = program

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they are, ``--help`` and ``--`` too."""
        ctx.args = list(args)
        return ctx.args

    def invoke(self, ctx: click.Context) -> None:
        """Run the program and end with its code."""
        ctx.exit(self._program(ctx.args) or 0)
