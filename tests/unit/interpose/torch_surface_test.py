# SPDX-License-Identifier: Apache-2.0
"""The functions of PyTorch in calls.def exist, in each of its versions, and no collective of gloo is left out.

testdata/torch_functions.txt has the functions of many versions; tests/torch/read_symbols.py writes it.
"""
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parent
CALLS = (TESTS.parents[2] / "interpose" / "calls.def").read_text()
ROWS = re.findall(r"^(?:CALL|ALIAS)\((_ZN4c10d\w+), (\w+)", CALLS, re.M)
COLLECTIVES = set(re.findall(r"^CALL\(\w+, (\w+), \d+, Collective\)", CALLS, re.M))
# Methods of ProcessGroupGloo that make no call: they ask, they set, or they serve the class itself.
OTHERS = {
    "connectContexts", "createDefaultDevice", "createDeviceForHostname", "createDeviceForInterface",
    "enableCollectivesTiming", "getContext", "getSequenceNumberForGroup", "nextTag", "runLoop",
    "setSequenceNumberForGroup",
    # They make other groups, whose constructor is wrapped.
    "merge", "reconfigure", "split",
}


def builds():
    """{build: its functions}"""
    header, *lines = (TESTS / "testdata" / "torch_functions.txt").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return {build: {name for marks, name in rows if marks[column] == "x"}
            for column, build in enumerate(header.split()[1:])}


BUILDS = builds()


def without_arguments(symbol):
    """The mangled name up to the arguments, which versions and ABIs may change."""
    parts = re.match(r"_ZNK?4c10d", symbol)[0]
    rest = symbol[len(parts):]
    while not rest.startswith("E"):
        length = re.match(r"\d+", rest)
        end = len(length[0]) + int(length[0]) if length else 2
        parts, rest = parts + rest[:end], rest[end:]
    return parts


def test_each_function_is_in_a_version():
    known = set.union(*BUILDS.values())
    assert [symbol for symbol, _ in ROWS if symbol not in known] == []


@pytest.mark.parametrize("build", BUILDS)
def test_each_version_has_what_serves_all_calls(build):
    serving = {without_arguments(symbol) for symbol, op in ROWS if op not in COLLECTIVES}
    found = {without_arguments(symbol) for symbol, _ in ROWS if symbol in BUILDS[build]}
    assert serving - found == set()


@pytest.mark.parametrize("build", BUILDS)
def test_each_method_of_a_group_is_wrapped(build):
    wrapped = {symbol for symbol, _ in ROWS}
    methods = {re.search(r"\d+([a-zA-Z_]+)$", without_arguments(symbol))[1]: symbol
               for symbol in BUILDS[build] if re.match(r"_ZN4c10d16ProcessGroupGloo\d+[a-z_]", symbol)}
    assert {name for name, symbol in methods.items() if symbol not in wrapped} - OTHERS == set()


def test_both_abis_of_strings_are_there():
    """"Ss" and "__cxx11": PyTorch's wheels before 2.6 or 2.7 have the older one."""
    with_strings = {without_arguments(symbol) for symbol, _ in ROWS if re.search("Ss|__cxx11", symbol)}
    for name in with_strings:
        forms = [symbol for symbol, _ in ROWS if without_arguments(symbol) == name]
        assert any("Ss" in form for form in forms) and any("__cxx11" in form for form in forms), name
