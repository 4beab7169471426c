# SPDX-License-Identifier: Apache-2.0
"""Checks that the built librollcall.so can be preloaded into any program."""
import os
import pathlib
import re
import subprocess

from oneccl_table import wrapped_functions

LIBRARY = os.environ["ROLLCALL_LIBRARY"]
CALLS = pathlib.Path(__file__).parents[3] / "interpose" / "calls.def"

HEADER = CALLS.with_name("rollcall.h")


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def read_table(calls):
    """The symbols of calls.def. Each function of MPI has two names."""
    table = set(re.findall(r"^(?:MPI_)?(?:CALL|ALIAS)\((\w+),", calls, re.M))
    for symbol, twin in re.findall(r"^MPI_FORMS\((\w+), (\w+)\)", calls, re.M):
        table |= {f"{symbol}_c", f"{twin}_c", f"{symbol}_init", f"{symbol}_init_c"}
    types = CALLS.with_name("nvshmem_types.def").read_text()
    for typed in re.findall(r"^NVSHMEM_TYPED\((\w+),", types, re.M):
        table |= {call.replace("##type##", typed)
                  for call in re.findall(r"each\((\w+##type##\w+),", types)}
        table.add(f"nvshmemx_{typed}_broadcast_on_stream")
    table |= wrapped_functions(CALLS.parent)
    return table | {f"P{symbol}" for symbol in table if symbol.startswith("MPI_")}


def test_exports_are_the_tables_and_three_of_libc():
    table = read_table(CALLS.read_text())
    exported = {line.split()[-1] for line in lines("nm", "-D", "--defined-only", LIBRARY)}
    annotations = set(re.findall(r"void (rollcall_\w+)\(", HEADER.read_text()))
    assert len(annotations) == 4
    plugin = {f"ncclProfiler_v{version}" for version in range(1, 7)}
    assert exported == table | annotations | plugin | {"dlsym", "prctl", "sigaltstack"}


def test_the_library_needs_only_libc():
    needed = {re.search(r"\[(.+)\]", line).group(1)
              for line in lines("readelf", "-d", LIBRARY) if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_needs_no_glibc_newer_than_2_17():
    versions = {tuple(map(int, found.split(".")))
                for line in lines("objdump", "-T", LIBRARY)
                for found in re.findall(r"GLIBC_([0-9.]+)", line)}
    assert versions
    assert max(versions) <= (2, 17)


def test_needs_no_symbol_of_a_c_plus_plus_library():
    undefined = [line.split()[-1].split("@")[0]
                 for line in lines("nm", "-D", "--undefined-only", LIBRARY)]
    assert not [name for name in undefined
                if name.startswith(("_Z", "_Unwind", "__cxa_throw", "__gxx"))]


def test_thread_locals_cost_no_call():
    undefined = "\n".join(lines("nm", "-D", "--undefined-only", LIBRARY))
    assert "__tls_get_addr" not in undefined


def test_thread_locals_fit_where_libraries_are_loaded_late():
    """glibc up to 2.36 keeps 1,664 bytes for the thread-locals of all libraries of that kind."""
    sizes = [int(line.split()[5], 16) for line in lines("readelf", "-lW", LIBRARY)
             if line.split()[:1] == ["TLS"]]
    assert sum(sizes) <= 256


def test_the_file_binds_symbols_at_once_and_is_never_unloaded():
    dynamic = "\n".join(lines("readelf", "-dW", LIBRARY))
    assert "NODELETE" in dynamic and "BIND_NOW" in dynamic


def test_stack_is_not_executable():
    stack = [line for line in lines("readelf", "-lW", LIBRARY) if "GNU_STACK" in line]
    assert stack and "RWE" not in stack[0]


def test_each_function_is_defined_in_the_source_of_the_header_that_declares_it():
    objects = pathlib.Path(LIBRARY).parents[1] / "interpose" / "CMakeFiles" / "rollcall_library.dir"
    defined, wrong = 0, []
    for source in sorted(CALLS.parent.rglob("*.cc")):
        header = source.with_suffix(".h")
        declared = header.read_text() if header.exists() else ""
        for line in lines("nm", "-C", "--defined-only", objects / f"{source.relative_to(CALLS.parent)}.o"):
            found = re.match(r"\S+ [TDB] rollcall::(?:\w+::)*(\w+)", line)
            if not found:
                continue
            defined += 1
            if not re.search(rf"\b{found.group(1)}\b", declared):
                wrong.append(f"{source.name} defines {found.group(1)}")
    assert defined > 100
    assert wrong == []
