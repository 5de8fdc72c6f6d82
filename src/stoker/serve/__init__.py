"""The server process: creates and connects all components from the settings, and serves HTTP."""

from stoker.serve.app_factory import Application, collect_garbage, create_app
from stoker.serve.database import open_store
from stoker.serve.encryption_keys import add_key, drop_old_keys, key_source
from stoker.serve.exposure import check_exposure
from stoker.serve.http_server import listen, run
from stoker.serve.site_secret import has_site_secret, load_site_secret
from stoker.serve.state_dir import admin_file, lock
from stoker.serve.supervisor import Supervisor
from stoker.serve.tls import open_tls

__all__ = [
    "Application",
    "Supervisor",
    "add_key",
    "admin_file",
    "check_exposure",
    "collect_garbage",
    "create_app",
    "drop_old_keys",
    "has_site_secret",
    "key_source",
    "listen",
    "load_site_secret",
    "lock",
    "open_store",
    "open_tls",
    "run",
]
