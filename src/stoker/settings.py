"""
Every setting, once: its name, type, default and help. Flags, environment and TOML file all derive from here.

A flag goes before ``STOKER_<NAME>`` in the environment, that before a key of the TOML file, that before the default.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from stoker.model.errors import Invalid

#: Where transports leave documents and find results: in Stoker itself, nowhere, or else at a URL.
EMBEDDED, OFF = "embedded", "off"
#: An account's URL, as Swift's login tells it.
_ACCOUNT = re.compile(r"https?://[^/?#]+(/[^?#]*)?/v1/[^/?#]+")
_TRUE = frozenset(("1", "true", "yes", "on"))
_FALSE = frozenset(("0", "false", "no", "off", ""))
#: Least and most; a century of hours or seconds is still a time that can be counted with.
_BOUNDS = {
    "port": (1, 65535),
    "token_hours": (1, 876_000),
    "stack_action_timeout": (1, 3_153_600_000),
    "keystone_cache_seconds": (0, 3600),
    "audit_retention_days": (0, 36_500),
    "max_object_size": (1, 256 * 1024 * 1024),
    "max_log_bytes": (1024, 1024 * 1024 * 1024),
    "log_retention_days": (0, 36_500),
}


def _setting(default: Any, help: str, **more: Any) -> Any:
    return field(default=default, metadata={"help": help, **more})


def data_home() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "stoker"


def config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "stoker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8004, "Port to listen on.")
    database: str = _setting("", "sqlite:///… or postgresql://… (default: a file in the state directory).")
    public_url: str = _setting("", "URL that clients and agents reach this at (default: http://host:port).")
    state_dir: Path = _setting(Path(), "Where database, keys and logs live (default: in the XDG data directory).")
    local_servers: bool = _setting(False, "Let OS::Nova::Server be a process on this machine, for development.")
    clouds_yaml: bool = _setting(True, "Keep an entry 'stoker' in clouds.yaml.")
    secret_key: str = _setting(
        "",
        "Secret that agents' keys derive from, to be shared by all processes "
        "(default: made once and kept in the state directory).",
    )
    log_level: str = _setting("info", "debug, info, warning or error.")
    token_hours: int = _setting(24, "Hours a token lives.")
    stack_action_timeout: int = _setting(3600, "Seconds an operation on a stack may take, if nothing is said.")
    default_software_config_transport: str = _setting(
        "AUTO", "How servers learn what to run, where a template does not say it."
    )
    default_deployment_signal_transport: str = _setting(
        "AUTO", "How servers report results, where a template does not say it."
    )
    max_resources_per_stack: int = _setting(-1, "Resources a stack may have (-1: no limit).")
    hidden_stack_tags: str = _setting(
        "data-processing-cluster", "Tags, separated by commas, that keep a stack out of lists (show_hidden shows it)."
    )
    max_stacks_per_project: int = _setting(-1, "Stacks a project may have (-1: no limit).")
    max_software_configs: int = _setting(-1, "Software configs a project may have (-1: no limit).")
    require_confirmation: bool = _setting(
        False, "Tell webhooks nothing until whoever gets their confirmation message has agreed."
    )
    max_software_deployments: int = _setting(-1, "Software deployments a project may have (-1: no limit).")
    max_log_bytes: int = _setting(
        8 * 1024 * 1024, "Bytes kept of what one run writes to stdout, and of stderr: half the head, half the tail."
    )
    log_retention_days: int = _setting(30, "Days that the output of runs is kept after it was written.")
    deployment_policy: str = _setting(
        "PROJECT", "Who may deploy to a server whose policy does not say it: its STACK, or anybody of its PROJECT."
    )
    audit_retention_days: int = _setting(365, "Days that `stoker db purge` leaves entries of the audit log.")

    max_object_size: int = _setting(16 * 1024 * 1024, "Bytes an object of the object store may have.")
    tempurl_sha1: bool = _setting(False, "Let objects' signed URLs be signed with SHA-1 too, as old clients do.")

    object_store: str = _setting(
        "embedded",
        "embedded, off, or the URL of an account of a Swift (http…/v1/AUTH_…), for POLL_ and TEMP_URL_ ones.",
    )
    object_store_cloud: str = _setting("", "Entry of clouds.yaml to log in to that Swift with.")
    object_store_auth_url: str = _setting("", "Where that Swift logs users in itself (http…/auth/v1.0).")
    object_store_user: str = _setting("", "User to log in with there.")
    object_store_key: str = _setting("", "That user's key.")
    messaging: str = _setting("embedded", "embedded, off, or the URL of a Zaqar, for ZAQAR_MESSAGE and ZAQAR_SIGNAL.")
    messaging_cloud: str = _setting(
        "", "Entry of clouds.yaml to log in to that Zaqar with (default: a token of Stoker's own for each project)."
    )
    remote_heats: str = _setting(
        "", "Other regions for OS::Heat::Stack, each with its entry of clouds.yaml (RegionTwo=name, …)."
    )
    signal_webhooks: bool = _setting(
        True, "Have that Zaqar call public_url when a result was posted, instead of looking for it often."
    )

    identity_mode: str = _setting("stoker", "Who keeps users and projects: stoker itself, or a keystone.")
    keystone_auth_url: str = _setting("", "Keystone's URL, as clients and agents reach it.")
    keystone_cloud: str = _setting("", "Entry of clouds.yaml with Stoker's own login at Keystone, instead of the next.")
    keystone_user: str = _setting("", "Stoker's own user at Keystone, with the role service (or admin).")
    keystone_password: str = _setting("", "That user's password.")
    keystone_project: str = _setting("service", "That user's project.")
    keystone_domain: str = _setting("Default", "Domain of that user and of its project.")
    keystone_cache_seconds: int = _setting(5, "Seconds that Keystone's word on a token is gone by.")
    stack_user_domain: str = _setting("heat", "Domain at Keystone for the users that stand for resources.")
    stack_domain_admin: str = _setting("", "That domain's administrator; HEAT and ZAQAR transports need one.")
    stack_domain_admin_password: str = _setting("", "That administrator's password.")

    @property
    def at_keystone(self) -> bool:
        return self.identity_mode == "keystone"

    @property
    def identity_url(self) -> str:
        """Where users log in, without the version."""
        return self.keystone_auth_url if self.at_keystone else f"{self.public_url}/identity"

    @property
    def hidden_tags(self) -> list[str]:
        return [tag.strip() for tag in self.hidden_stack_tags.split(",") if tag.strip()]

    @property
    def embeds_objects(self) -> bool:
        return self.object_store == EMBEDDED

    @property
    def embeds_queues(self) -> bool:
        return self.messaging == EMBEDDED

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.state_dir / 'stoker.db'}"


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None) -> Settings:
    """``flags`` that are None were not given. Raises Invalid naming the setting and where it came from."""
    kinds = get_type_hints(Settings)
    said: dict[str, Any] = {}
    for name, value in _file(file).items():
        if name not in kinds:
            raise Invalid(f"{file}: there is no setting {name!r}; settings are {', '.join(kinds)}")
        said[name] = _typed(kinds[name], value, f"{file}: {name}")
    for name, kind in kinds.items():
        variable = f"STOKER_{name.upper()}"
        if variable in environment:
            said[name] = _typed(kind, environment[variable], variable)
    for name, value in flags.items():
        if value is not None:
            said[name] = _typed(kinds[name], value, f"--{name.replace('_', '-')}")
    return _completed(Settings(**said))


def described() -> list[tuple[str, type, Any, str]]:
    """(name, type, default, help) of every setting."""
    kinds = get_type_hints(Settings)
    return [(each.name, kinds[each.name], each.default, each.metadata["help"]) for each in fields(Settings)]


def config_file(environment: Mapping[str, str]) -> Path | None:
    """The TOML file to read: the one that is named must be there, the default one may be."""
    if named := environment.get("STOKER_CONFIG"):
        return Path(named)
    default = config_home() / "stoker.toml"
    return default if default.exists() else None


def _completed(settings: Settings) -> Settings:
    state_dir = settings.state_dir if settings.state_dir != Path() else data_home()
    shown_host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104 — only compared
    host = f"[{shown_host}]" if ":" in shown_host else shown_host
    public_url = (settings.public_url or f"http://{host}:{settings.port}").rstrip("/")
    if not public_url.startswith(("http://", "https://")):
        raise Invalid(f"public_url must begin with http:// or https://, not {public_url!r}")
    if settings.deployment_policy not in ("STACK", "PROJECT"):
        raise Invalid(f"deployment_policy must be STACK or PROJECT, not {settings.deployment_policy!r}")
    _check_identity(settings)
    auth_url = settings.keystone_auth_url.rstrip("/").removesuffix("/v3").rstrip("/")
    for name, (least, most) in _BOUNDS.items():
        if not least <= (value := getattr(settings, name)) <= most:
            raise Invalid(f"{name} must be from {least} to {most}, not {value}")
    settings = replace(
        settings,
        state_dir=state_dir.expanduser().absolute(),
        public_url=public_url,
        keystone_auth_url=auth_url,
        object_store=settings.object_store.rstrip("/"),
        messaging=settings.messaging.rstrip("/"),
    )
    _check_elsewhere(settings)
    return settings


def _check_identity(settings: Settings) -> None:
    if settings.identity_mode not in ("stoker", "keystone"):
        raise Invalid(f"identity_mode must be stoker or keystone, not {settings.identity_mode!r}")
    if not settings.at_keystone:
        return
    if not settings.keystone_auth_url.startswith(("http://", "https://")):
        said = settings.keystone_auth_url
        raise Invalid(f"keystone_auth_url must begin with http:// or https://, not {said!r}: identity_mode needs it")
    if not settings.keystone_cloud and not (settings.keystone_user and settings.keystone_password):
        raise Invalid("identity_mode keystone needs keystone_user and keystone_password, or keystone_cloud")
    if bool(settings.stack_domain_admin) != bool(settings.stack_domain_admin_password):
        raise Invalid("stack_domain_admin and stack_domain_admin_password need one another")


def _check_elsewhere(settings: Settings) -> None:
    """What is said of a Swift and of a Zaqar. Raises Invalid."""
    store, login = settings.object_store, (settings.object_store_auth_url, settings.object_store_user)
    if store not in (EMBEDDED, OFF):
        if not _ACCOUNT.fullmatch(store):
            raise Invalid(f"object_store must be embedded, off, or an account's URL (http…/v1/AUTH_…), not {store!r}")
        if not settings.object_store_cloud and not all(login):
            raise Invalid(
                "object_store is elsewhere: object_store_cloud, or object_store_auth_url, object_store_user and"
                " object_store_key, must say how to log in there"
            )
    messaging = settings.messaging
    if messaging not in (EMBEDDED, OFF) and not messaging.startswith(("http://", "https://")):
        raise Invalid(
            f"messaging must be embedded, off, or a URL that begins with http:// or https://, not {messaging!r}"
        )


def _file(file: Path | None) -> Mapping[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Invalid(f"cannot read the settings in {file}: {error}") from None


def _typed(kind: type, value: Any, where: str) -> Any:
    if kind is bool and not isinstance(value, bool):
        word = str(value).lower()
        if word not in _TRUE | _FALSE:
            raise Invalid(f"{where} must be true or false, not {value!r}")
        return word in _TRUE
    if kind is int and (isinstance(value, bool) or not re.fullmatch(r"-?[0-9]+", str(value))):
        raise Invalid(f"{where} must be a whole number, not {value!r}")
    return kind(value)
