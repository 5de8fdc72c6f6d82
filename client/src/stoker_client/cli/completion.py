"""Print the script that completes commands and options in your shell.

\b
  bash:  eval "$(stoker completion bash)"                     in ~/.bashrc
  zsh:   eval "$(stoker completion zsh)"                      in ~/.zshrc
  fish:  stoker completion fish > ~/.config/fish/completions/stoker.fish
"""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "stoker", "_STOKER_COMPLETE").source())
