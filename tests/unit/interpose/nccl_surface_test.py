# SPDX-License-Identifier: Apache-2.0
"""Every function of NCCL is either wrapped, or listed in calls.def with the reason why not."""
import os
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parent
CALLS = (TESTS.parents[2] / "interpose" / "calls.def").read_text()
HEADERS = pathlib.Path(os.environ["NCCL_INCLUDE_DIR"])

ROWS = re.findall(r"^(CALL|ALIAS|NOT_WRAPPED)\((\w+), (.*)\)$", CALLS, re.M)
WRAPPED = {symbol for kind, symbol, _ in ROWS if kind != "NOT_WRAPPED"}
LEFT_ALONE = {symbol: why for kind, symbol, why in ROWS if kind == "NOT_WRAPPED"}


def known_functions():
    lines = (TESTS / "testdata" / "nccl_functions.txt").read_text().splitlines()
    return dict(reversed(line.split()) for line in lines if not line.startswith("#"))


def read_functions(header):
    text = re.sub(r"//.*|/\*.*?\*/", "", header.read_text(errors="replace"), flags=re.S)
    return set(re.findall(r"\b(nccl[A-Z]\w*)\s*\([^;{}]*\)\s*;", text))


def test_a_function_is_listed_once():
    symbols = [symbol for _, symbol, _ in ROWS]
    assert sorted(symbols) == sorted(set(symbols))


def test_each_has_a_reason():
    assert all(re.fullmatch(r'"[^"]{4,}"', why) for why in LEFT_ALONE.values())


@pytest.mark.parametrize("version", sorted(set(known_functions().values())))
def test_the_table_has_the_new_functions_of_each_version(version):
    brought = {name for name, since in known_functions().items() if since == version}
    assert brought <= WRAPPED | set(LEFT_ALONE)


def test_the_table_has_every_function_of_the_header():
    functions = read_functions(HEADERS / "nccl.h")
    assert "ncclAllReduce" in functions
    assert functions - WRAPPED - set(LEFT_ALONE) == set()


def test_the_table_has_every_function_of_the_library():
    file = HEADERS.parents[2] / "nccl_symbols"
    if not file.exists():
        pytest.skip(f"{HEADERS} did not come from PyPI, so its library's symbols are not at hand")
    symbols = {line.split()[-1].split("@")[0] for line in file.read_text().splitlines()
               if line.split()[1] in "TW"}
    assert "ncclAllReduce" in symbols
    assert {s for s in symbols if s.startswith("nccl")} - WRAPPED - set(LEFT_ALONE) == set()


def test_every_unwrapped_function_exists_in_a_library():
    assert set(LEFT_ALONE) <= set(known_functions())
