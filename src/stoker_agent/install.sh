#!/bin/sh
# Install Stoker's agent and enrol this server: STOKER_TOKEN=... sh install.sh
# STOKER_ROOT=DIR installs below a directory of one's own, without root and without systemd.
set -eu

url='@URL@'
token=${STOKER_TOKEN:?give the enrolment token in STOKER_TOKEN}
root=${STOKER_ROOT:-}
program=${root:-/opt/stoker-agent}/stoker-agent.pyz

fail() { echo "stoker-agent: $*" >&2; exit 1; }

python=$(command -v python3) || fail "python3 is needed"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || fail "python3 must be 3.8 or newer"
[ -n "$root" ] || [ "$(id -u)" = 0 ] || fail "run this as root, or give STOKER_ROOT=DIR"

mkdir -p "$(dirname "$program")"
if command -v curl >/dev/null; then
    curl -fsSL "$url/agent/v1/stoker-agent.pyz" -o "$program.new"
elif command -v wget >/dev/null; then
    wget -q "$url/agent/v1/stoker-agent.pyz" -O "$program.new"
else
    "$python" - "$url/agent/v1/stoker-agent.pyz" "$program.new" <<'PYTHON'
import sys, urllib.request
urllib.request.urlretrieve(*sys.argv[1:])
PYTHON
fi
chmod 755 "$program.new"
mv "$program.new" "$program"

unset STOKER_TOKEN  # nothing that runs later needs to see it
"$python" "$program" enroll --url "$url" --token "$token" ${root:+--root "$root"}

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    cat > /etc/systemd/system/stoker-agent.service <<UNIT
[Unit]
Description=Stoker agent
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=$python $program run
Restart=always
RestartSec=2
# What a script started goes on without the agent.
KillMode=process
# As many runs side by side as a policy allows, with what they start.
LimitNOFILE=65536
TasksMax=infinity

[Install]
WantedBy=multi-user.target
UNIT
    systemctl daemon-reload
    systemctl enable --now stoker-agent.service
    echo "stoker-agent runs as a service: systemctl status stoker-agent"
else
    nohup "$python" "$program" run ${root:+--root "$root"} >/dev/null 2>&1 &
    echo "stoker-agent runs in the background as process $!; start it at boot with: $python $program run ${root:+--root $root}"
fi
