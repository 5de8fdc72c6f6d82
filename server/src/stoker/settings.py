"""
All settings, each with its name, type, default and help. Flags, environment and TOML file derive from them.

A flag takes precedence over ``STOKER_<NAME>`` in the environment, then a key of the TOML file, then the default. Every
secret setting has a second form, ``<name>_file`` (``setting_sources``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from stoker import setting_sources
from stoker.addresses import derive_url, is_inside, parse_networks
from stoker.model.errors import Invalid

#: Values of ``object_store`` and ``messaging`` that are not URLs: the embedded service, or none.
EMBEDDED, OFF = "embedded", "off"
#: The URL of an account, in the form that Swift's login returns.
_ACCOUNT = re.compile(r"https?://[^/?#]+(/[^?#]*)?/v1/[^/?#]+")
_HEARTBEAT_GRACE_SECONDS = 5
#: Days that deleted stacks can be shown, with their events and snapshots.
_DELETED_STACK_DAYS = 7
#: Days that the output of runs is kept, if the runs are.
_LOG_DAYS = 30
#: Minimum bytes of the site secret. Agents' keys derive from it, so it must be hard to guess.
_MIN_SECRET_BYTES = 32


def _setting(
    group: str,
    default: Any,
    help: str,
    *,
    least: int | None = None,
    most: int | None = None,
    choices: tuple[str, ...] = (),
    secret: bool = False,
) -> Any:
    """
    Define a setting of a group in the help.

    ``least`` and ``most`` bound a number; a text is one of ``choices``. With ``secret``, the value is never shown, and
    the setting ``<name>_file`` may name a file with it.
    """
    facts = {"group": group, "help": help, "least": least, "most": most, "choices": choices, "secret": secret}
    return field(default=default, repr=not secret, metadata=facts)


_address = partial(_setting, "Addresses and TLS")
_state = partial(_setting, "State, database and secrets")
_server = partial(_setting, "Servers and deployments")
_limit = partial(_setting, "Limits of projects")
_record = partial(_setting, "Logs, audit and retention")
_connection = partial(_setting, "Connections")
_user = partial(_setting, "Users and logins")
_service = partial(_setting, "Object store, messaging and other regions")


def data_home() -> Path:
    """The default state directory (XDG data home)."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "stoker"


def config_home() -> Path:
    """The directory of the default settings file (XDG config home)."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "stoker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one process. ``load`` creates and checks the instance."""

    host: str = _address("127.0.0.1", "Address to listen on.")
    port: int = _address(8004, "Port to listen on.", least=1, most=65535)
    workers: int = _address(
        1, "Processes that serve the port, under one supervisor; more than one need PostgreSQL.", least=1, most=256
    )
    public_url: str = _address(
        "",
        "URL at which clients and agents reach Stoker (default: scheme, host and port of the listener; for a host of"
        " 0.0.0.0 or :: the certificate's name, else this machine's address).",
    )
    tls_cert: Path = _address(Path(), "PEM file with the certificate chain for HTTPS; read again on change.")
    tls_key: Path = _address(Path(), "PEM file with the key of tls_cert; read again on change.")
    tls_ca: Path = _address(
        Path(),
        "PEM file with the CA certificates that verify public_url, if clients' systems do not trust them: install lines"
        " and logins contain them (default: the root at the end of tls_cert, if there is one).",
    )
    insecure_http: bool = _address(
        False, "Serve other machines without TLS: everyone on the network path can read all secrets."
    )
    proxy_addresses: str = _address(
        "",
        "Addresses and networks, separated by commas, of the proxies in front: the limit of connections does not apply"
        " to them, and their X-Forwarded-For names the client's address.",
    )

    state_dir: Path = _state(Path(), "Directory of the database, keys and logs (default: in the XDG data directory).")
    database: str = _state("", "sqlite:///… or postgresql://… (default: a file in the state directory).")
    database_connections: int = _state(
        10,
        "Connections that this process opens to PostgreSQL, everything included; SQLite ignores it.",
        least=7,
        most=1000,
    )
    database_direct_url: str = _state(
        "",
        "URL of the same database without the connection pooler that database leads to (default: there is no pooler).",
    )
    secret_key: str = _state(
        "",
        "The site's secret, at least 32 bytes, the same for all processes of one database: agents' keys and signed URLs"
        " derive from it (default: created at the first start and kept in the state directory, keys/site.key).",
        secret=True,
    )
    encryption_keys: str = _state(
        "",
        "Keys that encrypt secrets in the database, newest first, separated by commas; each 32 bytes in URL-safe"
        " base64. All of them decrypt (default: the keys that 'stoker db rotate-keys' stores in the state directory,"
        " else a key that derives from secret_key).",
        secret=True,
    )
    clouds_yaml: bool = _state(True, "Write clouds.yaml with an entry 'stoker' where there is no such file.")
    log_level: str = _state("info", "debug (a line for each request, too), info, warning or error.")
    metrics_token: str = _state(
        "",
        "Token with which a monitoring system reads /metrics (Authorization: Bearer …), at least 32 characters"
        " (default: only administrators of the site read /metrics).",
        secret=True,
    )

    cloud: str = _server(
        "",
        "Entry of clouds.yaml of an OpenStack that has the servers, networks and volumes of all stacks (default: none; "
        "with identity_mode keystone, each user's own project).",
    )
    deployment_policy: str = _server(
        "PROJECT",
        "Who may deploy to a server whose policy does not set it: only its STACK, or its whole PROJECT.",
        choices=("STACK", "PROJECT"),
    )
    delivered_hooks: str = _server(
        "STORED",
        "Hooks that agents may fetch for a run, unless the server's policy sets it: NONE, STORED (in Stoker), or ANY.",
        choices=("NONE", "STORED", "ANY"),
    )
    heartbeat_seconds: int = _server(
        30, "Seconds between two heartbeats of an idle agent; a server that misses two is OFFLINE.", least=5, most=60
    )
    default_software_config_transport: str = _server(
        "AUTO", "How documents reach servers, unless the template sets it."
    )
    default_deployment_signal_transport: str = _server(
        "AUTO", "How servers report results, unless the template sets it."
    )
    require_signed_transports: bool = _server(
        False,
        "Refuse servers whose documents would reach, through an object store or a queue, an agent that cannot verify"
        " them (os-collect-config).",
    )
    local_servers_unsafe: bool = _server(
        False,
        "Run each OS::Nova::Server as a process on this machine, for development: scripts of templates run as the user"
        " of the service, who can read the site's secret, its database and the administrator's password.",
    )

    max_stacks_per_project: int = _limit(-1, "Stacks a project may have (-1: no limit).")
    max_resources_per_stack: int = _limit(-1, "Resources a stack may have (-1: no limit).")
    max_software_configs: int = _limit(-1, "Software configs a project may have (-1: no limit).")
    max_software_deployments: int = _limit(-1, "Software deployments a project may have (-1: no limit).")
    max_nested_stack_depth: int = _limit(5, "Depth of nested stacks, including the outermost.")
    stack_action_timeout: int = _limit(
        3600,
        "Seconds that an operation of a stack may take, unless the request sets its own limit.",
        least=1,
        most=3_153_600_000,
    )

    max_log_bytes: int = _record(
        8 * 1024 * 1024,
        "Bytes that are kept of one run's stdout, and of its stderr: half the head, half the tail.",
        least=1024,
        most=1024 * 1024 * 1024,
    )
    retention_days: int = _record(
        90,
        "Days that events, ended triggers, and runs after their end are kept; a deployment keeps its newest run.",
        least=0,
        most=36_500,
    )
    audit_retention_days: int = _record(365, "Days that entries of the audit log are kept.", least=0, most=36_500)

    max_connections_per_address: int = _connection(
        4096,
        "Connections accepted at a time from one address, or from one IPv6 /64 (0: no limit).",
        least=0,
        most=1_000_000,
    )
    client_timeout: int = _connection(
        30,
        "Seconds that a client may take for the head of a request, between two parts of its body, or to read a part of"
        " an answer; twice as many between two requests.",
        least=1,
        most=3600,
    )

    token_hours: int = _user(24, "Hours that a token is valid.", least=1, most=876_000)
    identity_mode: str = _user(
        "stoker", "Where users and projects are: stoker itself, or a keystone.", choices=("stoker", "keystone")
    )
    keystone_auth_url: str = _user("", "Keystone's URL, as clients and agents reach it.")
    keystone_cloud: str = _user(
        "", "Entry of clouds.yaml with Stoker's own login at Keystone: a user with the role service (or admin)."
    )
    keystone_cache_seconds: int = _user(
        5,
        "Seconds that results of token validation are cached; a revoked token is accepted for that long.",
        least=0,
        most=3600,
    )
    stack_delegation: str = _user(
        "AUTO",
        "How Stoker acts for the owners of stacks with servers: by a TRUST, by an APPLICATION_CREDENTIAL, or AUTO: as"
        " Keystone permits.",
        choices=("AUTO", "TRUST", "APPLICATION_CREDENTIAL"),
    )
    trust_roles: str = _user(
        "",
        "Roles, separated by commas, with which Stoker acts for the owners of stacks with servers (default: all roles"
        " of the owner's token).",
    )
    stack_domain_cloud: str = _user(
        "",
        "Entry of clouds.yaml with the login of the administrator of the domain for the users of resources, scoped to"
        " that domain; HEAT and ZAQAR transports need one.",
    )

    object_store: str = _service(
        "embedded",
        "embedded, off, or the URL of an account of a Swift (http…/v1/AUTH_…), for POLL_TEMP_URL and TEMP_URL_SIGNAL.",
    )
    object_store_cloud: str = _service(
        "", "Entry of clouds.yaml to log in to that Swift with: at a Keystone, or at Swift itself (http…/auth/v1.0)."
    )
    messaging: str = _service("embedded", "embedded, off, or the URL of a Zaqar, for ZAQAR_MESSAGE and ZAQAR_SIGNAL.")
    messaging_cloud: str = _service(
        "", "Entry of clouds.yaml to log in to that Zaqar with (default: a token of Stoker's own for each project)."
    )
    signal_webhooks: bool = _service(
        True, "Let that Zaqar call public_url when a result was posted, instead of frequent polls."
    )
    webhook_networks: str = _service(
        "",
        "Networks that subscriptions' webhooks may call besides public addresses, in CIDR notation, separated by commas"
        " (10.1.0.0/16, fd00::/8; default: none).",
    )
    remote_heats: str = _service(
        "", "Other regions for OS::Heat::Stack, each with its entry of clouds.yaml (RegionTwo=name, …)."
    )

    #: Where values that are no defaults come from, by setting: a flag, a variable, or a file.
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def has_tls(self) -> bool:
        """Whether Stoker itself serves HTTPS."""
        return self.tls_cert != Path()

    @property
    def at_keystone(self) -> bool:
        """Whether an external Keystone manages the users."""
        return self.identity_mode == "keystone"

    @property
    def offline_after(self) -> timedelta:
        """Time after the last heartbeat until a server is OFFLINE: two heartbeats and some grace."""
        return timedelta(seconds=2 * self.heartbeat_seconds + _HEARTBEAT_GRACE_SECONDS)

    @property
    def retention(self) -> Mapping[str, int]:
        """The days that records are kept, by kind (``work.retention``)."""
        days = dict.fromkeys(("events", "runs", "triggers"), self.retention_days)
        return {
            "stacks": _DELETED_STACK_DAYS,
            "logs": min(_LOG_DAYS, self.retention_days),
            "audit": self.audit_retention_days,
            **days,
        }

    @property
    def identity_url(self) -> str:
        """The URL at which users log in, without the version."""
        return self.keystone_auth_url if self.at_keystone else f"{self.public_url}/identity"

    def is_proxy(self, host: str) -> bool:
        """Whether the IP address ``host`` belongs to one of ``proxy_addresses``."""
        return bool(self.proxy_addresses) and is_inside(host, parse_networks(self.proxy_addresses))

    @property
    def embeds_objects(self) -> bool:
        """Whether the object store is Stoker's own."""
        return self.object_store == EMBEDDED

    @property
    def embeds_queues(self) -> bool:
        """Whether the messaging service is Stoker's own."""
        return self.messaging == EMBEDDED

    @property
    def database_url(self) -> str:
        """The URL of the database, by default of a SQLite file in the state directory."""
        return self.database or f"sqlite:///{self.state_dir / 'stoker.db'}"


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None) -> Settings:
    """
    Load the settings from all sources. ``flags`` that are None were not set.

    Raises Invalid with the name of the setting and the source of its value.
    """
    secrets = {setting.name for setting in _declared() if setting.metadata["secret"]}
    kinds = get_type_hints(Settings)
    types = {setting.name: kinds[setting.name] for setting in _declared()}
    values, sources = setting_sources.merge(flags, environment, file, types, secrets)
    return _completed(Settings(**values, sources=sources))


def _declared() -> list[Field[Any]]:
    """Return the fields that are settings."""
    return [each for each in fields(Settings) if each.metadata]


def warnings(environment: Mapping[str, str]) -> list[str]:
    """A warning for each variable that looks like a setting but is none."""
    return setting_sources.unknown_variables(environment, {setting.name for setting in describe_settings()})


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """One setting, or the file form of a secret setting."""

    name: str
    kind: type
    default: Any
    help: str
    group: str
    is_secret: bool = False


def describe_settings() -> list[SettingDescription]:
    """Describe each setting, and the file form of each secret setting."""
    kinds = get_type_hints(Settings)
    described: list[SettingDescription] = []
    for setting in _declared():
        name, help, group, is_secret = setting.name, *(setting.metadata[fact] for fact in ("help", "group", "secret"))
        described.append(SettingDescription(name, kinds[name], setting.default, help, group, is_secret))
        if is_secret:
            file_help = f"A file, readable by this user only. {help}"
            described.append(SettingDescription(setting_sources.file_form(name), Path, Path(), file_help, group))
    return described


def config_file(environment: Mapping[str, str]) -> Path | None:
    """The TOML file to read: the file in STOKER_CONFIG, else the default file if it exists."""
    if named := environment.get("STOKER_CONFIG"):
        return Path(named)
    default = config_home() / "stoker.toml"
    return default if default.exists() else None


def _completed(settings: Settings) -> Settings:
    state_dir = settings.state_dir if settings.state_dir != Path() else data_home()
    settings = replace(
        settings,
        tls_cert=_absolute(settings.tls_cert),
        tls_key=_absolute(settings.tls_key),
        tls_ca=_absolute(settings.tls_ca),
    )
    if settings.has_tls != (settings.tls_key != Path()):
        raise Invalid("tls_cert and tls_key need one another")
    public_url = _public_url(settings)
    _check_values(settings)
    try:
        parse_networks(settings.proxy_addresses)
    except ValueError as error:
        raise Invalid(f"proxy_addresses must be addresses and networks, separated by commas: {error}") from None
    _check_identity(settings)
    if settings.cloud and settings.local_servers_unsafe:
        raise Invalid("cloud and local_servers_unsafe exclude each other: servers are there, or processes here")
    if settings.secret_key:
        check_secret(settings.secret_key.encode(), "secret_key")
    _check_direct_url(settings)
    if settings.metrics_token:
        check_secret(settings.metrics_token.encode(), "metrics_token")
    auth_url = settings.keystone_auth_url.rstrip("/").removesuffix("/v3").rstrip("/")
    settings = replace(
        settings,
        state_dir=state_dir.expanduser().absolute(),
        public_url=public_url,
        keystone_auth_url=auth_url,
        object_store=settings.object_store.rstrip("/"),
        messaging=settings.messaging.rstrip("/"),
    )
    _check_external_services(settings)
    _check_workers(settings)
    return settings


def _public_url(settings: Settings) -> str:
    certificate = settings.tls_cert if settings.has_tls else None
    url = settings.public_url or derive_url(settings.host, settings.port, certificate)
    if not url.startswith(("http://", "https://")):
        raise Invalid(f"public_url must begin with http:// or https://, not {url!r}")
    if settings.has_tls and not url.startswith("https://"):
        raise Invalid(f"public_url must begin with https:// where tls_cert is set, not {url!r}")
    return url.rstrip("/")


def _check_workers(settings: Settings) -> None:
    if settings.workers == 1:
        return
    if settings.database_url.startswith("sqlite:"):
        raise Invalid(f"workers must be 1 on SQLite, which one process serves, not {settings.workers}: use PostgreSQL")
    if settings.local_servers_unsafe:
        raise Invalid(f"workers must be 1 with local_servers_unsafe, not {settings.workers}: one process runs them")


def _check_values(settings: Settings) -> None:
    for setting in _declared():
        name, value, facts = setting.name, getattr(settings, setting.name), setting.metadata
        words, least, most = facts["choices"], facts["least"], facts["most"]
        if words and value not in words:
            raise Invalid(f"{name} must be {', '.join(words[:-1])} or {words[-1]}, not {value!r}")
        if least is not None and not least <= value <= most:
            raise Invalid(f"{name} must be from {least} to {most}, not {value}")


def _check_direct_url(settings: Settings) -> None:
    if not settings.database_direct_url:
        return
    if not settings.database.startswith("postgresql"):
        raise Invalid("database_direct_url needs a PostgreSQL database in the setting database")
    if not settings.database_direct_url.startswith("postgresql"):
        raise Invalid("database_direct_url must begin with postgresql://")


def _absolute(path: Path) -> Path:
    """Make the path absolute, independent of the working directory; an empty path stays empty."""
    return path if path == Path() else path.expanduser().absolute()


def check_secret(secret: bytes, where: str) -> None:
    """Raises Invalid for a site secret that is short enough to guess."""
    if len(secret) < _MIN_SECRET_BYTES:
        raise Invalid(
            f"{where} must have at least {_MIN_SECRET_BYTES} bytes, not {len(secret)}:"
            " `openssl rand -hex 32` makes a good one"
        )


def _check_identity(settings: Settings) -> None:
    if not settings.at_keystone:
        return
    if not settings.keystone_auth_url.startswith(("http://", "https://")):
        url = settings.keystone_auth_url
        raise Invalid(f"keystone_auth_url must begin with http:// or https://, not {url!r}: identity_mode needs it")
    if not settings.keystone_cloud:
        raise Invalid("identity_mode keystone needs keystone_cloud, an entry of clouds.yaml with Stoker's own login")


def _check_external_services(settings: Settings) -> None:
    """Check the settings of an external Swift and Zaqar. Raises Invalid."""
    store = settings.object_store
    if store not in (EMBEDDED, OFF):
        if not _ACCOUNT.fullmatch(store):
            raise Invalid(f"object_store must be embedded, off, or an account's URL (http…/v1/AUTH_…), not {store!r}")
        if not settings.object_store_cloud:
            raise Invalid(
                "object_store is elsewhere: object_store_cloud must name an entry of clouds.yaml to log in with"
            )
    messaging = settings.messaging
    if messaging not in (EMBEDDED, OFF) and not messaging.startswith(("http://", "https://")):
        raise Invalid(
            f"messaging must be embedded, off, or a URL that begins with http:// or https://, not {messaging!r}"
        )
