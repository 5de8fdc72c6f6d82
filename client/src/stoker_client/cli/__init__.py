"""
The ``stoker`` command. Modules hold related commands and groups of commands; names with a leading ``_`` are helpers.

``main.COMMANDS`` has the module of each command, and its line in ``stoker --help``, which imports no module. A command
of this package is an object with the command's name in its module. Example, for the line
``"hello": ("hello", "Greet a server")`` and the module ``hello.py``::

    import click

    @click.command
    @click.argument("server")
    def hello(server: str) -> None:
        click.echo(f"Hello, {server}.")

Commands of a group are functions of its module, such as ``server.py``. Other packages add commands by entry points.
"""
