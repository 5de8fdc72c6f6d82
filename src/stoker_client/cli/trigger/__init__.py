"""Triggers: run an action of a component, or any config, now, on one server or on many.

\b
  stoker trigger app database BACKUP -i path=/var/backups --follow
  stoker trigger app database BACKUP --label role=db --max-concurrent 10
  stoker trigger --config setup --on web1 --on web2
  stoker trigger create list database BACKUP     # for a stack named like a subcommand

Any other first word is read as the arguments of `trigger create`.
"""

DEFAULT = "create"
