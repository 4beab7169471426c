# SPDX-License-Identifier: Apache-2.0
"""Installs what an older or newer PyTorch needs on a CPU, into the environment whose Python runs this.

    without_cuda.py VERSION

PyPI has most versions for CUDA only: with libraries of 3 GB. They load only where these are there, so each is
replaced by one with the functions that PyTorch asks for, all of which fail with "no device". Everything else is
real. The exit code is that of pip or of the compiler.
"""

import collections
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

NO_DEVICE = 100  # cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE
OF_CUDA = r"nvidia|cuda|triton"
SYSTEM = r"ld-linux|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util)\.so"


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def pip(*arguments):
    """Says why it failed; the missing libraries of CUDA are no news."""
    command = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "install", *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)


def install(version):
    pip("--no-deps", f"torch=={version}")
    wanted = importlib.metadata.requires("torch")
    pip(*(one for one in wanted if not re.match(OF_CUDA, one) and "extra ==" not in one))


def undefined_in(libraries):
    """The functions that these ask others for: [(name, version of the symbol or "")]."""
    asked, defined = set(), set()
    for library in libraries:
        for line in run("nm", "-D", library).splitlines():
            *_, kind, symbol = line.split()
            name, _, version = symbol.replace("@@", "@").partition("@")
            if kind == "U":
                asked.add((name, version))
            elif kind not in "wv":
                defined.add(name)
    return sorted((name, version) for name, version in asked if name not in defined)


def needed_by(libraries):
    own = {library.name for library in libraries}
    names = {name for library in libraries for name in re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "-d", library))}
    return sorted(name for name in names - own if not re.match(SYSTEM, name))


def files_of_versions(libraries):
    """The library of each version of a symbol."""
    found = {}
    for library in libraries:
        file = ""
        for line in run("readelf", "-V", library).splitlines():
            file = (re.findall(r"File: (\S+)", line) or [file])[0]
            for version in re.findall(r"^  0x\w+:\s+Name: (\S+)", line):
                found[version] = file
    return found


def compile_stub(folder, name, functions):
    """functions: {version of the symbols: their names}."""
    with tempfile.TemporaryDirectory() as scratch:
        source, versions = pathlib.Path(scratch, "stub.c"), pathlib.Path(scratch, "versions")
        source.write_text("".join(f"int {function}(void) {{ return {NO_DEVICE}; }}\n"
                                  for group in functions.values() for function in group))
        versions.write_text("".join(f"{version} {{ global: {'; '.join(group)}; }};\n"
                                    for version, group in functions.items() if version))
        script = [f"-Wl,--version-script={versions}"] if any(functions) else []
        run("cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", *script, "-o", folder / name, source)


def replace_cuda():
    folder = pathlib.Path(sysconfig.get_path("purelib"), "torch", "lib")
    libraries = sorted(folder.glob("lib*.so*"))
    wanted = needed_by(libraries)
    if not wanted:
        return  # a build for the CPU
    file_of = files_of_versions(libraries)
    stubs = {name: collections.defaultdict(list) for name in wanted}
    first = stubs[wanted[0]]
    for function, version in undefined_in(libraries):
        if re.match("cu|nccl|nv|__cuda|_cu", function) or file_of.get(version) in stubs:
            stubs.get(file_of.get(version), first)[version].append(function)
    for name, functions in stubs.items():
        compile_stub(folder, name, functions)


if __name__ == "__main__":
    install(sys.argv[1])
    replace_cuda()
    run(sys.executable, "-c", "import torch.distributed; assert torch.distributed.is_gloo_available()")
