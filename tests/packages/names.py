"""Prints the names of the crates of this workspace that can be published, one on each line."""

import json
import subprocess

metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]))
for package in metadata["packages"]:
    # None is "anywhere", an empty list "nowhere".
    if package["publish"] is None:
        print(package["name"])
