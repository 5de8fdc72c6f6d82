#!/usr/bin/env python3
"""Fetch the page as a visitor would."""

import os
import pathlib
import urllib.request

page = urllib.request.urlopen(os.environ["url"] + "/").read().decode()
print(page)
pathlib.Path(os.environ["heat_outputs_path"] + ".page").write_text(page)
