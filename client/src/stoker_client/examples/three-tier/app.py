#!/usr/bin/env python3
"""Serve a page made of what the database knows."""

import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

SERVER = """
import html, http.server, json, pathlib, sys, urllib.request
home, = sys.argv[1:]
known = json.loads(pathlib.Path(home, "app.json").read_text())
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        request = urllib.request.Request(known["db_url"], headers={"X-Secret": known["secret"]})
        records = json.load(urllib.request.urlopen(request))
        items = "".join(f"<li>{html.escape(record)}</li>" for record in records)
        page = f"<h1>{html.escape(known['title'])}</h1><ul>{items}</ul>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer((known["address"], 0), Handler)
pathlib.Path(home, "port.new").write_text(str(server.server_port))
pathlib.Path(home, "port.new").rename(pathlib.Path(home, "port"))
server.serve_forever()
"""

home = pathlib.Path(os.environ["HOME"], "app")
home.mkdir(exist_ok=True)
values = {name: os.environ[name] for name in ("address", "db_url", "secret", "title")}
settings = home.joinpath("app.json")
settings.touch(mode=0o600)
settings.write_text(json.dumps(values))
home.joinpath("port").unlink(missing_ok=True)
subprocess.Popen(
    [sys.executable, "-c", SERVER, str(home)],
    start_new_session=True,
    stdin=subprocess.DEVNULL,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
while not home.joinpath("port").exists():
    time.sleep(0.01)
url = f"http://{os.environ['address']}:{home.joinpath('port').read_text()}"
print("the application answers", urllib.request.urlopen(url).status, "at", url)
pathlib.Path(os.environ["heat_outputs_path"] + ".url").write_text(url)
