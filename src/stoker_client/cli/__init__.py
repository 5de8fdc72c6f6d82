"""
The ``stoker`` command. Each file is a command, and each folder a group; names with a leading ``_`` are helpers.

A command's file defines a click command named ``command``. Its module docstring is the help text. Groups show the first
line without importing the file. Example of a file ``hello.py`` in a group's folder::

    '''Greet a server.'''

    import click

    @click.command
    @click.argument("server")
    def command(server: str) -> None:
        click.echo(f"Hello, {server}.")
"""
