#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the configuration of nfpm for one package and one format.

    nfpm_config.py deploy/package/rollcall.yaml rpm

The environment has TREE and the other variables of the file. An rpm marks papers (`rpm --query
--docfiles`; some hosts do not install them), and nfpm takes only single files for those. Files for
lintian are Debian's alone.
"""
import os
import pathlib
import string
import sys

import yaml

PAPERS = ("/usr/share/doc/", "/usr/share/man/")
DEBIANS = "/usr/share/lintian/"


def for_rpm(entry):
    if entry["dst"].startswith(DEBIANS):
        return
    if not entry["dst"].startswith(PAPERS):
        yield entry
        return
    source = pathlib.Path(string.Template(entry["src"]).substitute(os.environ))
    for file in sorted(source.iterdir()) if source.is_dir() else [source]:
        name = f"{entry['dst']}/{file.name}" if source.is_dir() else entry["dst"]
        yield {"src": str(file), "dst": name, "type": "doc"}


def main():
    path, packager = sys.argv[1:]
    config = yaml.safe_load(pathlib.Path(path).read_text())
    if packager == "rpm":
        config["contents"] = [new for entry in config["contents"] for new in for_rpm(entry)]
    yaml.safe_dump(config, sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
