"""The unit of systemd that runs the agent."""

from __future__ import annotations

from typing import Optional, Sequence

_SYSTEMD = """\
[Unit]
Description=Stoker agent
After=network-online.target
Wants=network-online.target
# A machine whose agent systemd no longer starts would be out of reach.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
Restart=always
# An agent that cannot start is started again ever more rarely. systemd before 254 ignores the last two lines.
RestartSec=2
RestartSteps=10
RestartMaxDelaySec=60
# The agent sends a sign of life every minute, if it does not hang.
WatchdogSec=300
# What a script started goes on without the agent.
KillMode=process
# A run that needs too much memory must not end the agent.
OOMPolicy=continue
{account}\
# As many runs side by side as a policy allows, with what they start.
LimitNOFILE=65536
TasksMax=infinity

[Install]
WantedBy=multi-user.target
"""

#: A run of root may change anything, so the unit of root restricts nothing: each namespace, filter of system calls or
#: missing capability would also apply to what runs do (docs/agent-operation.md).
_ACCOUNT = """\
User={user}
Group={user}
"""
_RESTRICTIONS = """\
NoNewPrivileges=true
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths=/etc/stoker-agent /opt/stoker-agent /var/lib/stoker-agent /var/log/stoker-agent
PrivateTmp=true
PrivateDevices=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectKernelLogs=true
ProtectControlGroups=true
ProtectClock=true
ProtectHostname=true
RestrictSUIDSGID=true
RestrictRealtime=true
LockPersonality=true
"""


def systemd_unit(command: Sequence[str], user: Optional[str] = None, *, has_sudo: bool = False) -> str:
    """
    Return the unit that runs ``command``, as root or as ``user``.

    The unit of a user without sudo is restricted further: what its runs cannot do in any case, systemd forbids.
    """
    account = "" if user is None else _ACCOUNT.format(user=user) + ("" if has_sudo else _RESTRICTIONS)
    return _SYSTEMD.format(command=" ".join(command), account=account)
