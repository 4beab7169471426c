# SPDX-License-Identifier: Apache-2.0
"""The functions of oneCCL's C++ interface that the library wraps exist, and no collective and no message is left out.

testdata/oneccl_functions.txt has those of some versions.
"""
import pathlib
import re

from oneccl_table import wrapped_functions

TESTS = pathlib.Path(__file__).parent
INTERPOSE = TESTS.parents[2] / "interpose"
WRAPPED = {symbol for symbol in wrapped_functions(INTERPOSE) if not re.match(r"_ZN3ccl2v1\d+[a-z_]+I[^f]", symbol)}
_, HEADER, *LINES = (TESTS / "testdata" / "oneccl_functions.txt").read_text().splitlines()
ROWS = [line.split() for line in LINES]
KNOWN = {symbol for _, symbol in ROWS}
# Ways to make a communicator that are not recorded: for several devices, and with attributes.
OTHER_CREATIONS = re.compile(r"_ZNK3ccl6detail11environment|_ZN3ccl2v112communicator5splitERKNS0_15comm_split_attrE")


def test_each_function_is_in_a_version():
    assert set() == WRAPPED - KNOWN


def test_no_call_and_no_wait_is_left_out():
    left_out = {symbol for symbol in KNOWN - WRAPPED if not OTHER_CREATIONS.match(symbol)}
    assert {symbol for symbol in left_out if symbol.startswith("_ZN3ccl2v1")} == set()


def test_each_version_has_what_serves_all_calls():
    serving = {"_ZN3ccl2v15event4waitEv", "_ZN3ccl2v15event4testEv", "_ZN3ccl2v15eventD1Ev",
               "_ZN3ccl2v112communicatorD1Ev", "_ZNK3ccl2v13kvs11get_addressEv", "_ZTVN3ccl2v13kvsE"}
    assert {symbol for marks, symbol in ROWS if "-" not in marks} >= serving
