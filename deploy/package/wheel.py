#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of an installed tree: the programs in scripts/, the library in data/lib/rollcall, where
the programs look for it, and the pure Python package, with the runbooks that its MCP server shows.

    wheel.py --root TREE --version 0.1.0 --machine x86_64 --output FOLDER

The same input gives the same bytes: the times in the archive are SOURCE_DATE_EPOCH. The tag is
manylinux2014, because the programs are static and the library needs glibc 2.17; tests/packages checks
both. A wheel cannot say that the simulated NCCL of `rollcall demo` needs a newer glibc: the demo does.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import time
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("rollcall", "rollcall-agent", "rollcalld", "rollcall-probe", "rollcall-probe-nvml")
ENTRY_POINTS = """[console_scripts]
rollcall-mcp = rollcall.mcp.__main__:main

[pytest11]
rollcall = rollcall.pytest_plugin
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True, help="the tree, with usr/ in it")
    parser.add_argument("--version", required=True)
    parser.add_argument("--machine", required=True, choices=["x86_64", "aarch64"])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    return parser.parse_args()


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: rollcall
Version: {version}
Summary: Finds out why a distributed training job hangs
License: Apache-2.0
Requires-Python: >=3.8
Provides-Extra: mcp
Requires-Dist: mcp<3,>=2.3; extra == "mcp"
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

Rollcall names the rank at fault when a distributed training job hangs: what it does, and what to do.

    rollcall demo                                              # a job that hangs, without a GPU
    rollcall run torchrun --nproc-per-node 8 train.py       # your own job, unchanged
"""


def wheel_file(tag):
    return f"""Wheel-Version: 1.0
Generator: rollcall deploy/package/wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""


def files_of(arguments, tag):
    """Pairs of a name in the wheel and the content; programs are those below scripts/."""
    name = f"rollcall-{arguments.version}"
    usr = arguments.root / "usr"
    for program in PROGRAMS:
        yield f"{name}.data/scripts/{program}", (usr / "bin" / program).read_bytes()
    for folder, place in (("lib/rollcall", "lib/rollcall"), ("share", "share")):
        for file in sorted((usr / folder).rglob("*")):
            if "lintian" in file.parts or file.name == "changelog.gz":
                continue  # Debian's
            # A wheel holds no links.
            if file.is_file() and not file.is_symlink():
                yield f"{name}.data/data/{place}/{file.relative_to(usr / folder)}", file.read_bytes()
            elif file.is_symlink():
                yield (f"{name}.data/data/{place}/{file.relative_to(usr / folder)}",
                       file.resolve().read_bytes())
    for file in sorted((SOURCE / "python" / "rollcall").rglob("*.py")):
        yield f"{file.relative_to(SOURCE / 'python')}", file.read_bytes()
    for file in sorted((SOURCE / "docs" / "runbook").glob("*.md")):
        yield f"rollcall/mcp/runbook/{file.name}", file.read_bytes()
    yield f"{name}.dist-info/licenses/LICENSE", (SOURCE / "LICENSE").read_bytes()
    doc = usr / "share" / "doc" / "rollcall"
    notices = doc / "THIRD_PARTY_NOTICES"
    if notices.exists():
        yield f"{name}.dist-info/licenses/THIRD_PARTY_NOTICES", notices.read_bytes()
    sbom = doc / "sbom.cdx.json"
    if sbom.exists():
        yield f"{name}.dist-info/sboms/rollcall.cdx.json", sbom.read_bytes()
    yield f"{name}.dist-info/METADATA", metadata(arguments.version).encode()
    yield f"{name}.dist-info/entry_points.txt", ENTRY_POINTS.encode()
    yield f"{name}.dist-info/WHEEL", wheel_file(tag).encode()


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main():
    arguments = parse_arguments()
    tag = f"py3-none-manylinux2014_{arguments.machine}"
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    record_name = f"rollcall-{arguments.version}.dist-info/RECORD"
    record = ""
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / f"rollcall-{arguments.version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, content):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = "/scripts/" in name or name.endswith(".so") or ".so." in name
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            archive.writestr(entry, content)

        for name, content in files_of(arguments, tag):
            add(name, content)
            record += record_line(name, content)
        add(record_name, (record + f"{record_name},,\n").encode())
    print(path)


if __name__ == "__main__":
    main()
