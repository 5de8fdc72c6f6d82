"""
The ``stoker`` command. Each module is a command or a group of commands; names with a leading ``_`` are helpers.

A module defines ``command``. Its docstring is the help text, whose first line ``stoker --help`` shows without an
import. Example of a module ``hello.py``::

    '''Greet a server.'''

    import click

    @click.command
    @click.argument("server")
    def command(server: str) -> None:
        click.echo(f"Hello, {server}.")

Commands of a group are functions of its module, such as ``server.py``, or entry points of other packages.
"""
