#!/usr/bin/env python3
"""Write the records to a file and serve them to those who know the secret."""

import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

SERVER = """
import http.server, json, pathlib, sys
home, address, secret = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.headers.get("X-Secret") == secret
        body = pathlib.Path(home, "records.json").read_bytes() if known else b"who are you?"
        self.send_response(200 if known else 403)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer((address, 0), Handler)
pathlib.Path(home, "port.new").write_text(str(server.server_port))
pathlib.Path(home, "port.new").rename(pathlib.Path(home, "port"))
server.serve_forever()
"""

home = pathlib.Path(os.environ["HOME"], "db")
home.mkdir(exist_ok=True)
home.joinpath("records.json").write_text(json.dumps(os.environ["records"].split()))
home.joinpath("port").unlink(missing_ok=True)
command = [sys.executable, "-c", SERVER, str(home), os.environ["address"], os.environ["secret"]]
subprocess.Popen(
    command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
while not home.joinpath("port").exists():
    time.sleep(0.01)
url = f"http://{os.environ['address']}:{home.joinpath('port').read_text()}"
request = urllib.request.Request(url, headers={"X-Secret": os.environ["secret"]})
print("serving", urllib.request.urlopen(request).read().decode(), "at", url)
pathlib.Path(os.environ["heat_outputs_path"] + ".url").write_text(url)
