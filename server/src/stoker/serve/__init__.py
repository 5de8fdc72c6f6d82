"""The server process: creates and connects all components from the settings, and serves HTTP."""

from stoker.serve.database import has_database, name_database, open_store
from stoker.serve.http_server import listen, run
from stoker.serve.site import collect_garbage, create_app, create_asgi
from stoker.serve.site_keys import add_key, drop_old_keys, has_site_secret, key_source, load_site_secret
from stoker.serve.state_dir import admin_file, lock
from stoker.serve.supervisor import Supervisor
from stoker.serve.tls import check_exposure, open_tls

__all__ = [
    "Supervisor",
    "add_key",
    "admin_file",
    "check_exposure",
    "collect_garbage",
    "create_app",
    "create_asgi",
    "drop_old_keys",
    "has_database",
    "has_site_secret",
    "key_source",
    "listen",
    "load_site_secret",
    "lock",
    "name_database",
    "open_store",
    "open_tls",
    "run",
]
