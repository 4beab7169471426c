# SPDX-License-Identifier: Apache-2.0
"""Writes which functions of c10d each version of PyTorch has, for tests/unit/interpose/torch_surface_test.py.

    read_symbols.py WHEEL... > tests/unit/interpose/testdata/torch_functions.txt

Takes the wheels of PyPI (pip download --no-deps torch==VERSION); those for aarch64 are small, and their names are
those of x86-64. Prints a column for each wheel, and a row for each function of the classes that the library wraps.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

LIBRARY = "torch/lib/libtorch_cpu.so"
CLASSES = r"16ProcessGroupGloo|12ProcessGroup|4Work|11PrefixStore|8TCPStore|9FileStore|9HashStore"
# Their own functions and those of gloo's works; of other nested classes none. No second form of a constructor.
WANTED = re.compile(rf"_ZNK?4c10d(?:{CLASSES})(?:9AsyncWork|8SendWork|8RecvWork)?(?:\d+[a-z_]\w*?|C1|D[01])E")


def build_of(wheel):
    _, version, *_, platform = wheel.stem.split("-")
    return tuple(map(int, re.findall(r"\d+", version.split("+")[0]))), re.findall("x86_64|aarch64", platform)[0]


def functions_of(wheel):
    with tempfile.TemporaryDirectory() as scratch:
        file = zipfile.ZipFile(wheel).extract(LIBRARY, scratch)
        lines = subprocess.run(["nm", "-D", "--defined-only", file], check=True, stdout=subprocess.PIPE, text=True)
    names = (line.split()[-1].split("@")[0] for line in lines.stdout.splitlines())
    return {name for name in names if WANTED.match(name)}


def main(wheels):
    builds = {build_of(wheel): functions_of(wheel) for wheel in sorted(wheels, key=build_of)}
    print("# Functions of PyTorch, by wheel of PyPI. Written by tests/torch/read_symbols.py.")
    print("#", *(".".join(map(str, version)) + "/" + platform for version, platform in builds))
    for name in sorted(set.union(*builds.values())):
        print("".join("x" if name in functions else "." for functions in builds.values()), name)


if __name__ == "__main__":
    main([pathlib.Path(argument) for argument in sys.argv[1:]])
