"""Triggers: run an action of a component, or any config, now, on one server or on many.

\b
  stoker trigger app database BACKUP -i path=/var/backups --follow
  stoker trigger app database BACKUP --label role=db --max-concurrent 10
  stoker trigger --config setup --on web1 --on web2
  stoker trigger create list database BACKUP     # a stack that is called as a command is

What is no command of those below is taken for what `stoker trigger create` takes.
"""

DEFAULT = "create"
