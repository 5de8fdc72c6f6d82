"""Facts about the machine, read from files and the kernel, and facts of the site, from the directory ``facts.d``."""

from __future__ import annotations

import array
import contextlib
import fcntl
import ipaddress
import json
import logging
import os
import re
import socket
import struct
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from stoker_agent import __version__
from stoker_agent.environment import read_file
from stoker_agent.programs import available
from stoker_agent.tools import read_output

_LONGEST = 255
_FAMILIES = {
    "debian": ("debian", "ubuntu"),
    "redhat": ("rhel", "fedora", "centos"),
    "suse": ("suse", "opensuse"),
    "arch": ("arch",),
}
_DMI = Path("/sys/class/dmi/id")
_CLOUD = Path("/run/cloud-init/instance-data.json")
#: Names of virtualization, by words in the vendor or the product that the firmware states.
_VIRTUAL = {
    "qemu": "kvm",
    "kvm": "kvm",
    "openstack": "kvm",
    "amazon ec2": "kvm",
    "google": "kvm",
    "vmware": "vmware",
    "virtualbox": "virtualbox",
    "innotek": "virtualbox",
    "xen": "xen",
    "microsoft": "hyperv",
    "parallels": "parallels",
}
_log = logging.getLogger("stoker-agent")
_SECONDS = 10.0
#: Limits: files in the directory, and bytes of one file or of one program's output.
_MOST_FILES, _LONGEST_FILE = 64, 16 * 1024
#: The request for the IPv4 addresses of all interfaces, the size of an entry (ifreq), and the largest number of them.
_SIOCGIFCONF, _ENTRY, _MOST_ENTRIES = 0x8912, 40 if struct.calcsize("P") == 8 else 32, 4096
_IPV6 = Path("/proc/net/if_inet6")
#: Interfaces with addresses that one machine reports. Hosts of containers have thousands.
_MOST_INTERFACES, _MOST_ADDRESSES = 64, 16
#: Addresses for documentation (RFC 5737, RFC 3849): a socket is connected to them, and nothing is sent.
_OUTSIDE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
#: Files with errors in this process, so that each error is logged once.
_failed: Set[str] = set()


def collect(hooks: Path, site: Path, tools: Mapping[str, str]) -> Dict[str, Any]:
    """
    Return the facts. Facts that the machine does not state are left out.

    ``hooks`` is the agent's hook directory, ``site`` the directory of the site's facts, ``tools`` the versions of
    installed programs.
    """
    networks = list_addresses()
    hostname = socket.gethostname()
    facts: Dict[str, Any] = {
        "os": _os(),
        "kernel": os.uname().release,
        "arch": os.uname().machine,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mb": _memory(),
        "hostname": hostname,
        "fqdn": _fqdn(hostname),
        "address": _main_address(networks),
        "networks": networks,
        "cloud": _cloud(),
        "virtualization": _virtualization(),
        "container": _container(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "agent": __version__,
        "hooks": available(hooks),
        "tools": dict(tools),
        "custom": read_site_facts(site),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", {})}


def _os() -> Dict[str, str]:
    values: Dict[str, str] = {}
    with contextlib.suppress(OSError):
        values = read_file(Path("/etc/os-release")) or read_file(Path("/usr/lib/os-release"))
    id = values.get("ID", "") or sys.platform
    similar = {id, *values.get("ID_LIKE", "").split()}
    family = next((name for name, ids in _FAMILIES.items() if any(word.startswith(ids) for word in similar)), id)
    os_facts = {
        "id": id,
        "family": family,
        "name": values.get("NAME", ""),
        "version": values.get("VERSION_ID", ""),
        "codename": values.get("VERSION_CODENAME", ""),
    }
    return {name: value[:_LONGEST] for name, value in os_facts.items() if value}


def _memory() -> Optional[int]:
    """Return the total memory in MiB. The agent's own cgroup does not limit it."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", _read(Path("/proc/meminfo")), re.MULTILINE)
    return int(match.group(1)) // 1024 if match else None


def _fqdn(hostname: str) -> str:
    """Return the host's name with its domain, as the resolver knows it, else the host name."""
    if "." in hostname:
        return hostname
    with contextlib.suppress(OSError, UnicodeError):
        for entry in socket.getaddrinfo(hostname.encode("ascii"), None, 0, socket.SOCK_STREAM, 0, socket.AI_CANONNAME):
            if "." in entry[3] and not entry[3].startswith("localhost"):
                return entry[3][:_LONGEST]
    return hostname


def _cloud() -> Dict[str, str]:
    """Return what cloud-init knows of the machine, else the id that the firmware of some clouds states."""
    values: Any = {}
    with contextlib.suppress(ValueError, RecursionError):
        values = json.loads(_read(_CLOUD) or "{}")
    instance = values.get("v1") if isinstance(values, dict) else None
    if isinstance(instance, dict):
        names = {"id": "instance_id", "name": "cloud_name", "region": "region", "zone": "availability_zone"}
        texts = {name: instance.get(key) for name, key in names.items()}
        if texts["name"] in (None, "unknown"):
            texts["name"] = instance.get("platform")  # of a machine outside of clouds: the source of its data
        return {name: text[:_LONGEST] for name, text in texts.items() if isinstance(text, str) and text}
    tag = _dmi("board_asset_tag")
    return {"id": tag, "name": "aws"} if tag.startswith("i-") else {}


def _virtualization() -> Optional[str]:
    stated = f"{_dmi('sys_vendor')} {_dmi('product_name')} {_dmi('bios_vendor')}".lower()
    name = next((name for word, name in _VIRTUAL.items() if word in stated), None)
    if name is None and re.search(r"^flags\s*:.*\bhypervisor\b", _read(Path("/proc/cpuinfo"), 8192), re.MULTILINE):
        return "other"
    return name


def _container() -> Optional[str]:
    """Return the kind of container that the agent runs in, or None."""
    stated = _read(Path("/run/systemd/container")).strip() or os.environ.get("container", "")  # noqa: SIM112  # systemd's name
    if stated:
        return stated[:_LONGEST]
    if Path("/run/.containerenv").exists():
        return "podman"
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    return "docker" if Path("/.dockerenv").exists() else None


def list_addresses() -> Dict[str, List[str]]:
    """Return addresses by interface, without the loopback interface and link-local addresses."""
    networks: Dict[str, List[str]] = {}
    for name, text in (*_ipv4(), *_ipv6()):
        address = ipaddress.ip_address(text)
        if address.is_loopback or (address.version == 6 and address.is_link_local):
            continue
        if name in networks or len(networks) < _MOST_INTERFACES:
            addresses = networks.setdefault(name, [])
            if len(addresses) < _MOST_ADDRESSES:
                addresses.append(str(address))
    return {name: networks[name] for name in sorted(networks)}


def _ipv4() -> Iterator[Tuple[str, str]]:
    """Yield the IPv4 addresses of all interfaces. An alias such as ``eth0:1`` belongs to its interface."""
    entries = array.array("B", bytes(_ENTRY * _MOST_ENTRIES))
    request = bytearray(struct.pack("iP", len(entries), entries.buffer_info()[0]))
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kernel:
        fcntl.ioctl(kernel, _SIOCGIFCONF, request)
        for start in range(0, struct.unpack("iP", request)[0], _ENTRY):
            name = bytes(entries[start : start + 16]).partition(b"\0")[0].decode("utf-8", "replace")
            yield name.partition(":")[0], socket.inet_ntoa(bytes(entries[start + 20 : start + 24]))


def _ipv6() -> Iterator[Tuple[str, str]]:
    for line in _read(_IPV6).splitlines():
        digits, *_, name = line.split()
        yield name, socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))


def _main_address(networks: Dict[str, List[str]]) -> Optional[str]:
    """Return the address with which the machine reaches other networks, else its first one, else None."""
    for family, outside in _OUTSIDE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))
            address = str(probe.getsockname()[0])
            if not address.startswith("127."):
                return address
    return next((address for addresses in networks.values() for address in addresses), None)


def _dmi(name: str) -> str:
    return _read(_DMI / name).strip()[:_LONGEST]


def _read(path: Path, most: int = 262_144) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def read_site_facts(folder: Path) -> Dict[str, Any]:
    """
    Return the facts in ``folder`` by file name without its ending.

    An executable prints its facts, another file contains them: as JSON, or as lines NAME=VALUE. A file with an error is
    logged and left out.
    """
    facts: Dict[str, Any] = {}
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError:
        return facts
    for path in paths[:_MOST_FILES]:
        try:
            facts[path.stem] = _parse_facts(_content(path))
            _failed.discard(path.name)
        except (OSError, ValueError, RecursionError) as error:
            if path.name not in _failed:
                _failed.add(path.name)
                _log.warning("facts.invalid: %s is left out: %s: %s", path, type(error).__name__, error)
    return facts


def _content(path: Path) -> str:
    if os.access(str(path), os.X_OK):
        return read_output([str(path)], _SECONDS, _LONGEST_FILE).decode("utf-8")
    with path.open("rb") as file:
        data = file.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise OSError(f"more than {_LONGEST_FILE} bytes")
    return data.decode("utf-8")


def _parse_facts(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        values = _lines(text)
        if values is None:
            raise ValueError("neither JSON nor lines NAME=VALUE") from None
        return values


def _lines(text: str) -> Optional[Dict[str, str]]:
    values: Dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            return None
        values[name.strip()] = value.strip()
    return values or None
