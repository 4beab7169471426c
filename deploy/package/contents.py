#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes down what the static programs contain: the licences (THIRD_PARTY_NOTICES), a bill of materials
(CycloneDX), Debian's copyright file, and the man pages of agent and daemon.

    contents.py --build build/portable --tree TREE
    contents.py --build build/portable-aarch64 --tree TREE --emulator qemu-aarch64 --sysroot build/arm64

The archives come from the linker script of the preset portable, the packages from dpkg, and the
licences from the packages' own copyright files. Headers and the page's modules have no archive: the
table below names them.
"""

import argparse
import contextlib
import gzip
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
from email.utils import formatdate

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot5
from packageurl import PackageURL

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ("libcli11-dev", "nlohmann-json3-dev", "libspdlog-dev", "libfmt-dev")
FROM_SOURCE = ("cpp-httplib", "prometheus-cpp", "postgresql")
FROM_NPM = ("preact", "uplot")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Debian:
    """The packages that the archives come from: those of this machine, or those unpacked in `sysroot`."""

    def __init__(self, sysroot):
        self.root = sysroot or pathlib.Path("/")
        self.database = f"--admindir={self.root / 'var/lib/dpkg'}"

    def owner(self, file):
        """The package of a file below the root; None: a cross compiler's own, which this machine has."""
        if not file.is_relative_to(self.root):
            return None
        path = f"/{file.relative_to(self.root)}"
        for candidate in (path, path.replace("/usr/lib/", "/lib/", 1)):
            answer = subprocess.run(["dpkg", self.database, "-S", candidate], capture_output=True, text=True)
            if answer.returncode == 0:
                return answer.stdout.split(":")[0]
        return None

    def package(self, name):
        """The source package with its version, and the text of its copyright file."""
        source, version = run("dpkg-query", self.database, "-W", "-f", "${source:Package} ${source:Version}\n",
                              name).splitlines()[0].split()
        return source, version, (self.root / "usr/share/doc" / name / "copyright").read_text()


def archives(build):
    """Debian's archives in the programs, by the script for the linker; not what this build made from sources."""
    script = (build / "libportable.a").read_text()
    files = {pathlib.Path(path).resolve() for path in re.findall(r'"([^"]+)"', script)}
    return sorted(file for file in files if not file.is_relative_to(build.resolve()))


def packages_of_archives(build, debian, compiler):
    """Pairs of a Debian and a name in it."""
    files = archives(build)
    # The C and C++ libraries are in every static program.
    for name in ("libc.a", "libstdc++.a", "libm.a"):
        files.append(pathlib.Path(run(*compiler, f"-print-file-name={name}").strip()).resolve())
    found = {(debian, name) for name in HEADERS}
    for file in files:
        place = next((place for place in (debian, Debian(None)) if place.owner(file)), None)
        if place is None:
            raise SystemExit(f"contents.py: {file} is in the programs and belongs to no package of Debian")
        found.add((debian if place.root == debian.root else place, place.owner(file)))
    return sorted(found, key=lambda pair: pair[1])


def source_package(name):
    folder = SOURCE / "build" / "sources" / name
    version = re.search(r"\(([^)]+)\)", (folder / "debian" / "changelog").read_text())[1]
    return name, version, (folder / "debian" / "copyright").read_text()


def npm_package(build, name):
    folder = build / "daemon" / "page" / "node_modules" / name
    version = json.loads((folder / "package.json").read_text())["version"]
    return name, version, (folder / "LICENSE").read_text()


def parts(build, debian, compiler):
    """-> {(kind, name): (version, licence)}"""
    found = {}
    for place, package in packages_of_archives(build, debian, compiler):
        name, version, text = place.package(package)
        found["deb", name] = (version, text)
    for package in FROM_SOURCE:
        if not (SOURCE / "build" / "sources" / package).exists():
            continue
        name, version, text = source_package(package)
        found["deb", name] = (version, text)
    for package in FROM_NPM:
        if (build / "daemon" / "page" / "node_modules" / package).exists():
            name, version, text = npm_package(build, package)
            found["npm", name] = (version, text)
    return found


NOTICE = """Rollcall's static programs contain the parts below, each under its own licence.

Some parts are under the LGPL (glibc, elfutils). Rollcall's source and the script that links the
programs (deploy/package.sh) let you link them anew with other versions of these parts. Debian's
snapshot archive has the source of each Debian package in the exact version below.
"""


def write_notices(found, path):
    text = NOTICE
    for (kind, name), (version, licence) in sorted(found.items()):
        text += f"\n{'=' * 78}\n{name} {version} ({'Debian' if kind == 'deb' else 'npm'})\n{'=' * 78}\n{licence}"
    path.write_text(text)


def write_sbom(found, version, path):
    bom = Bom()
    whole = Component(name="rollcall", version=version, type=ComponentType.APPLICATION,
                      bom_ref=f"rollcall@{version}")
    bom.metadata.component = whole
    for (kind, name), (part_version, _) in sorted(found.items()):
        url = PackageURL("deb" if kind == "deb" else "npm", "debian" if kind == "deb" else None, name,
                         part_version)
        bom.components.add(Component(name=name, version=part_version, type=ComponentType.LIBRARY, purl=url,
                                     bom_ref=str(url)))
    bom.register_dependency(whole, bom.components)
    value = json.loads(JsonV1Dot5(bom).output_as_string())
    # Chance and time would make two builds of one commit differ.
    value.pop("serialNumber", None)
    value.get("metadata", {}).pop("timestamp", None)
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


COPYRIGHT = """Copyright 2026 the Rollcall authors

Rollcall is under the Apache License 2.0. On Debian systems its full text is in
/usr/share/common-licenses/Apache-2.0.

The programs are static. /usr/share/doc/rollcall/THIRD_PARTY_NOTICES has the licences of the libraries
inside.
"""


CHANGELOG = """{package} ({version}) unstable; urgency=medium

  * The changes are in /usr/share/doc/rollcall/CHANGELOG.md.

 -- Rollcall maintainers <maintainers@rollcall.invalid>  {date}
"""
# Why a rule of lintian does not hold here.
OVERRIDES = """# One static build serves every distribution: docs/decisions/packages.md
{package}: statically-linked-binary
{package}: embedded-library
"""
OVERRIDES_OF_ROLLCALL = """# The simulated NCCL takes the libraries of whoever loads it; only the demo uses it.
rollcall: undeclared-elf-prerequisites
# rollcall-probe and rollcall-probe-nvml: only the agent starts them.
rollcall: no-manual-page
"""
# Of the programs whose pages the command `rollcall man` does not write: their line in man's list.
SERVICES = {"rollcall-agent": "agent of a host that runs training jobs",
            "rollcalld": "daemon that finds out why training jobs hang"}


def compress(text, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())


def write_debian_files(tree, version):
    """The changelog and the reasons for lintian, of each package."""
    moment = formatdate(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    for package in ("rollcall", "rollcall-agent", "rollcalld", "rollcall-slurm"):
        compress(CHANGELOG.format(package=package, version=version, date=moment),
                 tree / "usr" / "share" / "doc" / package / "changelog.gz")
        if package == "rollcall-slurm":
            continue  # it has no program
        file = tree / "usr" / "share" / "lintian" / "overrides" / package
        file.parent.mkdir(parents=True, exist_ok=True)
        rest = OVERRIDES_OF_ROLLCALL if package == "rollcall" else ""
        file.write_text(OVERRIDES.format(package=package) + rest)


@contextlib.contextmanager
def runnable(program, emulator):
    """A program of its name that this machine runs."""
    if emulator is None:
        yield program
        return
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / program.name
        script.write_text(f'#!/bin/sh\nexec {emulator} {shlex.quote(str(program))} "$@"\n')
        script.chmod(0o755)
        yield script


def write_man_pages(tree, emulator):
    man = tree / "usr" / "share" / "man"
    for page in man.rglob("*.1"):
        compress(page.read_text(), page.with_name(page.name + ".gz"))
        page.unlink()
    for program, summary in SERVICES.items():
        with runnable(tree / "usr" / "bin" / program, emulator) as command:
            page = run("help2man", "--no-info", "--section=8", f"--name={summary}", str(command))
        # The default is the caller's folder.
        own = f"/dev/shm/rollcall\\-{os.geteuid()}"
        compress(page.replace(own, "/dev/shm/rollcall\\-UID").replace(own.replace("\\", ""), "/dev/shm/rollcall-UID"),
                 man / "man8" / f"{program}.8.gz")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--tree", type=pathlib.Path, required=True)
    parser.add_argument("--emulator", help="runs programs of another processor")
    parser.add_argument("--sysroot", type=pathlib.Path, help="where the libraries of the other processor are")
    arguments = parser.parse_args()
    compiler = ["g++"]
    if arguments.sysroot:
        arguments.sysroot = arguments.sysroot.resolve()
        libraries = arguments.sysroot / "usr/lib/aarch64-linux-gnu"
        compiler = ["aarch64-linux-gnu-g++", f"--sysroot={arguments.sysroot}", f"-B{libraries}"]
    found = parts(arguments.build, Debian(arguments.sysroot), compiler)
    with runnable(arguments.tree / "usr" / "bin" / "rollcall", arguments.emulator) as rollcall:
        version = run(str(rollcall), "--version").split()[1]
    folder = arguments.tree / "usr" / "share" / "doc" / "rollcall"
    folder.mkdir(parents=True, exist_ok=True)
    write_notices(found, folder / "THIRD_PARTY_NOTICES")
    write_sbom(found, version, folder / "sbom.cdx.json")
    (folder / "copyright").write_text(COPYRIGHT)
    for name in ("CHANGELOG.md", "LICENSE"):  # without the mode that the file has in this checkout
        (folder / name).write_bytes((SOURCE / name).read_bytes())
    write_debian_files(arguments.tree, version)
    write_man_pages(arguments.tree, arguments.emulator)


if __name__ == "__main__":
    main()
