"""The machine's IP addresses, read from the kernel (rtnetlink), without another program and without ctypes."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Dict, Iterator, List, Optional, Tuple

_GET_ADDRESSES, _NEW_ADDRESS, _DONE, _ERROR = 22, 20, 3, 2
_REQUEST_DUMP = 0x301
_HEADER, _MESSAGE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=HH")
_ADDRESS, _LOCAL = 1, 2
_SECONDS = 2.0
#: Interfaces with addresses that one machine reports. Hosts of containers have thousands.
MOST_INTERFACES = 64
_MOST_ADDRESSES = 16
#: Addresses for documentation (RFC 5737, RFC 3849): a socket is connected to them, and nothing is sent.
_OUTSIDE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def list_addresses() -> Dict[str, List[str]]:
    """Return addresses by interface, without the loopback interface and link-local addresses."""
    networks: Dict[str, List[str]] = {}
    with contextlib.suppress(OSError, struct.error, ValueError):
        for index, address in _dump():
            if address.startswith(("127.", "fe80:")) or address == "::1":
                continue
            name = socket.if_indextoname(index)
            if name in networks or len(networks) < MOST_INTERFACES:
                addresses = networks.setdefault(name, [])
                if len(addresses) < _MOST_ADDRESSES:
                    addresses.append(address)
    return {name: networks[name] for name in sorted(networks)}


def main_address(networks: Dict[str, List[str]]) -> Optional[str]:
    """Return the address with which the machine reaches other networks, else its first one, else None."""
    for family, outside in _OUTSIDE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))
            address = str(probe.getsockname()[0])
            if not address.startswith("127."):
                return address
    return next((address for addresses in networks.values() for address in addresses), None)


def _dump() -> Iterator[Tuple[int, str]]:
    """Yield (index of the interface, address). Raises OSError, struct.error."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.settimeout(_SECONDS)
        request = _MESSAGE.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        kernel.send(_HEADER.pack(_HEADER.size + len(request), _GET_ADDRESSES, _REQUEST_DUMP, 1, 0) + request)
        while True:
            data = kernel.recv(65536)
            while data:
                length, kind = _HEADER.unpack_from(data)[:2]
                if kind in (_DONE, _ERROR) or length < _HEADER.size:
                    return
                if kind == _NEW_ADDRESS:
                    yield from _parse(data[_HEADER.size : length])
                data = data[_align(length) :]


def _parse(message: bytes) -> Iterator[Tuple[int, str]]:
    family, _, _, _, index = _MESSAGE.unpack_from(message)
    attributes: Dict[int, bytes] = {}
    rest = message[_MESSAGE.size :]
    while len(rest) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        if length < _ATTRIBUTE.size:
            break
        attributes[kind] = rest[_ATTRIBUTE.size : length]
        rest = rest[_align(length) :]
    # Of a point-to-point interface, ADDRESS is the other end.
    packed = attributes.get(_LOCAL) or attributes.get(_ADDRESS)
    if family in (socket.AF_INET, socket.AF_INET6) and packed:
        yield index, socket.inet_ntop(family, packed)


def _align(length: int) -> int:
    return (length + 3) & ~3
