# SPDX-License-Identifier: Apache-2.0
"""The functions of oneCCL's C++ interface that calls.def lists, with those that its macros make."""
import re

TYPES = "ahstijlmfd"


def wrapped_functions(interpose):
    table = (interpose / "oneccl_cpp_calls.def").read_text().split("\n\n", 1)[1]
    found = set(re.findall(r"^(?:CALL|ALIAS)\((_ZNK?3ccl\w+),", (interpose / "calls.def").read_text(), re.M))
    for kind, row in re.findall(r"^(UNTYPED|WITH_STREAM|TYPED)\((.*?)\)$", table, re.M | re.S):
        _, name, parameters, *rest = [column.strip() for column in row.split(",")]
        before = [f"{name}I{letter}NS0_5eventEEES2_" for letter in TYPES] if kind == "TYPED" else [f"{name}E"]
        without, with_stream = "RKNS0_12communicatorERKNS0_", "RKNS0_12communicatorERKNS0_6streamERKNS0_"
        ends = {"UNTYPED": (without + rest[0], with_stream + rest[1]), "WITH_STREAM": (with_stream + rest[0],),
                "TYPED": (without + rest[0], with_stream + rest[0])}[kind]
        found |= {f"_ZN3ccl2v1{head}{parameters}{end}" for head in before for end in ends}
    return found
