# SPDX-License-Identifier: Apache-2.0
"""Hostile host programs behave alike with and without librollcall.so.

Each row of the tables below is a small program of tests/unit/interpose/hostile/. It runs several
times with the library, and as often without. Both runs must end within about the same time, with the same
output and the same exit code. The library may add one line on stderr. ROLLCALL_HOSTILE_ROUNDS=50
runs the long form.
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

LIBRARY = os.environ["ROLLCALL_LIBRARY"]
STUBS = os.environ["ROLLCALL_STUB_DIR"]
SOURCES = pathlib.Path(__file__).parent / "hostile"
ROUNDS = int(os.environ.get("ROLLCALL_HOSTILE_ROUNDS", "5"))
DEADLINE = 90  # seconds for one run
INCLUDES = [f"-I{os.environ['NCCL_INCLUDE_DIR']}", f"-I{os.environ['CUDA_INCLUDE_DIR']}"]
ROOT = os.geteuid() == 0


def plain(folder):
    (folder / "segments").mkdir(mode=0o700)
    return str(folder / "segments")


def for_all(folder):
    """Where a process may also write when it is nobody."""
    folder.chmod(0o711)
    (folder / "segments").mkdir()
    (folder / "segments").chmod(0o777)
    return str(folder / "segments")


def a_file(folder):
    (folder / "segments").write_text("mine\n")
    return str(folder / "segments")


def a_link(folder):
    (folder / "there").mkdir()
    (folder / "segments").symlink_to(folder / "there")
    return str(folder / "segments")


def a_pipe(folder):
    os.mkfifo(folder / "segments")
    return str(folder / "segments")


def long(folder):
    path = folder / ("a" * 200) / ("b" * 200)
    path.mkdir(parents=True)
    return str(path / ("c" * 200))


def too_long(folder):
    return str(folder) + "/" + "a/" * 2500


def of_two_lines(folder):
    (folder / "a\nb").write_text("")
    return str(folder / "a\nb")


def own_shared_memory(size):
    """A command that gives the program a /dev/shm of its own."""
    return ("unshare", "--mount", "sh", "-c",
            f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"', "sh")


@dataclasses.dataclass
class Row:
    name: str  # the function in the program; in the test's name
    does: str
    segment: bool = True  # whether one is left
    says: bool = False  # the library may say one line
    folder: object = plain
    environment: dict = dataclasses.field(default_factory=dict)
    root: bool = False  # only root can do it
    x86: bool = False  # there is such a thing on x86-64 only
    slow: bool = False  # the short form runs it twice only
    command: tuple = ()  # in front of the program


THREADS = [
    Row("pending_cancel", "creates its first communicators while a cancellation is pending"),
    # How many a thread creates before its end depends on the scheduler: at times more than 1,024.
    Row("cancelled_at_once", "cancels threads asynchronously while they create communicators",
        says=True),
    Row("cancelled_in_first_calls", "cancels a thread in the first call of each of 400 processes"),
    Row("cancelled_in_first_creations", "the same, while it creates its first communicator", slow=True),
    Row("cancelled_in_calls", "cancels threads asynchronously in calls"),
    Row("threads_end_in_calls", "400 threads end inside a call"),
    Row("tiny_stacks", "starts and calls on stacks of PTHREAD_STACK_MIN"),
    Row("many_threads", "4096 threads in calls at once", slow=True),
    Row("user_threads", "leaves calls by swapcontext and comes back"),
    Row("eight_creators", "eight threads create and destroy communicators"),
    Row("many_communicators", "1,500 communicators (10,000 in the long form), one after the other",
        slow=True, environment={"HOSTILE_COMMUNICATORS": "10000" if ROUNDS > 5 else "1500"}),
    Row("too_many_communicators", "1,100 communicators at once", says=True, slow=True),
    Row("variables_change", "another thread changes the environment all the time"),
    Row("main_thread_ends", "the main thread ends before the process starts to call"),
    Row("calls_within_a_call", "calls that make calls"),
    Row("open_groups", "groups 3,000 deep"),
]
PROCESSES = [
    Row("fork_storm", "forks while four threads create communicators", slow=True),
    Row("raw_clone", "children by the system call, unknown to the C library"),
    Row("raw_clone_exits", "such a child ends by exit()"),
    Row("clone_with_memory", "children that share its memory call"),
    Row("exec_in_a_thread", "a thread becomes another program"),
    Row("exec_many_times", "becomes itself 20 times", slow=True),
    Row("fork_within_a_call", "forks inside a call"),
    Row("spawn", "starts programs by posix_spawn"),
    Row("generations", "a child of a child, twelve deep"),
    Row("calls_in_fork_handlers", "calls in handlers of pthread_atfork"),
    Row("stop_and_go", "is stopped and continued under load"),
    Row("traced", "is traced by its parent"),
    Row("not_dumpable", "is not dumpable"),
    Row("nobody_after_start", "becomes nobody after its start", says=True, root=True),
    Row("nobody_before_start", "becomes nobody before its start", segment=False, says=True,
        root=True),
    Row("nobody_before_start", "becomes nobody, where nobody may write", segment=False, says=True,
        root=True, folder=for_all),
    Row("another_root", "changes its root after its start", says=True, root=True),
    Row("new_mounts", "leaves its mount namespace after its start", root=True),
    Row("new_users", "leaves its user namespace after its start", says=True, root=True),
    Row("new_pids", "leaves its pid namespace after its start", root=True),
    Row("without_proc", "has no /proc", root=True),
    Row("hidden_proc", "sees nobody else's processes", root=True, segment=False, says=True),
    Row("folder_deleted", "works in a deleted folder"),
    Row("no_environment", "has no environment", segment=None, root=True,
        command=own_shared_memory("64m")),
    Row("cleared_environment", "has cleared its environment", segment=None, root=True,
        command=own_shared_memory("64m")),
    Row("all_closed", "closes every descriptor it can think of"),
    Row("closed_before_start", "has no descriptor open at its start"),
]
FOLDERS = [
    Row("ends", "ROLLCALL_DIR is a file", segment=False, says=True, folder=a_file),
    Row("ends", "ROLLCALL_DIR is a link", segment=False, says=True, folder=a_link),
    Row("ends", "ROLLCALL_DIR is a FIFO", segment=False, says=True, folder=a_pipe),
    Row("ends", "ROLLCALL_DIR is long", folder=long),
    Row("ends", "ROLLCALL_DIR is too long", segment=False, says=True, folder=too_long),
    Row("ends", "ROLLCALL_DIR has two lines", segment=False, says=True, folder=of_two_lines),
    Row("ends", "ROLLCALL_DIR cannot be made", segment=False, says=True,
        folder=lambda folder: str(folder / "none" / "segments")),
    Row("ends", "ROLLCALL_DIR is new", folder=lambda folder: str(folder / "segments")),
    Row("moves_about", "ROLLCALL_DIR is relative and the process moves", says=True,
        folder=lambda folder: "segments"),
    Row("ends", "ROLLCALL_DIR is empty", segment=None, folder=lambda folder: "", root=True,
        command=own_shared_memory("64m")),
    Row("ends", "/dev/shm has no room", segment=False, says=True, folder=lambda folder: "",
        root=True, command=own_shared_memory("16k")),
]
FILES = [
    Row("file_deleted", "its segment is deleted", segment=None, says=True),
    Row("file_replaced", "its segment is replaced by another file", segment=None, says=True),
    Row("file_becomes_a_pipe", "its segment is replaced by a FIFO", segment=None, says=True),
    Row("folder_deleted_while_it_works", "the folder is deleted", segment=None, says=True),
    Row("folder_closed_while_it_works", "the folder's rights are taken away", says=True),
    Row("many_files", "500 other segments lie in the folder"),
    Row("fills_up", "its segment fills the file system", segment=None, says=True, root=True,
        folder=lambda folder: "/dev/shm/segments", command=own_shared_memory("1m")),
    Row("odd_name", "its name has control characters and parentheses"),
    Row("large_environment", "5 MB of environment"),
    Row("is_a_daemon", "leaves its session and its parent"),
    Row("lets_go_of_children", "forks a child that outlives it"),
    Row("no_more_processes", "RLIMIT_NPROC is 1"),
    Row("maps_no_more_than_the_file", "reads all that is mapped"),
    Row("file_truncated", "its segment is truncated", says=True),
    Row("file_truncated_with_a_signal_stack", "the same, on a thread with a signal stack", says=True),
    Row("file_truncated_with_little_memory", "the same, with 16 MiB of memory left (RLIMIT_DATA)", says=True),
    Row("file_truncated_under_threads", "the same, while threads call", says=True),
    Row("faults_in_its_own_memory", "dies by SIGBUS in its own memory"),
    Row("handles_its_own_faults", "handles SIGBUS itself"),
    Row("is_sent_a_bus_error", "is sent SIGBUS"),
    Row("child_dies_by_a_bus_error", "its child dies by SIGBUS"),
]
SIGNALS = [
    Row("all_blocked", "blocks all signals"),
    Row("takes_the_last_signal", "takes SIGRTMAX for itself after its start"),
    Row("takes_all_signals_first", "has a handler for each signal before its start"),
    Row("dies_by_the_last_signal", "dies by SIGRTMAX"),
    Row("child_dies_by_any_signal", "its children die by real-time signals"),
    Row("calls_in_handlers", "calls in a signal handler"),
    Row("creates_while_interrupted", "signal handlers call while communicators are created"),
    Row("leaves_calls_by_signal", "leaves calls by siglongjmp from a handler"),
    Row("leaves_calls_by_jump", "leaves calls by longjmp"),
    Row("smallest_signal_stack", "has a signal stack of 2 KiB"),
    Row("nobody_reads_stderr", "stderr is a full pipe", segment=False, folder=a_file),
    Row("reader_of_stderr_ended", "stderr is a pipe without a reader", segment=False,
        folder=a_file),
    Row("stderr_may_not_grow", "stderr is a file that may not grow", segment=False, says=True,
        folder=a_file),
    Row("quit_with_broken_stderr", "is asked for stacks where stderr is broken"),
    Row("signal_flood", "another thread sends it signals all the time"),
    Row("calls_at_exit", "calls when it exits"),
    Row("starts_at_exit", "creates its first communicator when it exits"),
    Row("quick_exits", "ends by quick_exit"),
    Row("aborts", "ends by abort"),
    Row("exits_in_a_call", "ends by exit inside a call"),
]
LIMITS = [
    Row("no_file_may_grow", "RLIMIT_FSIZE is 0", segment=False, says=True),
    Row("files_stay_small", "RLIMIT_FSIZE is 100 KiB", segment=None, says=True),
    Row("few_descriptors", "has used up its descriptors", segment=False, says=True),
    Row("no_descriptors_later", "has used up its descriptors later", says=True),
    Row("no_stack_to_grow", "RLIMIT_STACK is 256 KiB"),
    Row("no_locked_memory", "RLIMIT_MEMLOCK is 0"),
    Row("locks_all_it_has", "locks all its memory, nearly as much as it may", segment=None,
        says=True, root=True),
    Row("locks_all_after_start", "locks all its memory after its start", root=True),
    Row("uses_its_address_space", "uses nearly all the address space that it may", segment=None,
        says=True),
    Row("forks_without_mappings", "does not pass mappings of files to its children"),
    Row("throws_pages_away", "throws away pages of all mapped files"),
    Row("killed_for_unusual_calls", "seccomp kills it for unusual system calls", segment=None,
        says=True),
    Row("calls_not_permitted", "seccomp forbids what the library needs (EPERM)", segment=None,
        says=True),
    Row("calls_unknown", "seccomp forbids what the library needs (ENOSYS)", segment=None,
        says=True),
    Row("no_files_at_all", "seccomp forbids to open files", segment=False, says=True),
    Row("no_files_later", "seccomp forbids to open files after its start", says=True),
    Row("no_new_memory", "seccomp forbids new memory", segment=False, says=True),
    Row("locked_in", "seccomp kills it for all but write and exit after its start"),
    Row("locked_in_without_another_call", "the same, and it only ends"),
    Row("threads_locked_in", "the same, and threads make their first calls then"),
    Row("locked_in_strictly", "the strict mode of seccomp, after its start"),
    Row("forbids_the_counter_first", "forbids itself the CPU's counter", segment=False, says=True,
        x86=True),
    Row("forbids_the_counter_later", "the same after its start", says=True, x86=True),
]
LOADER = [
    Row("looked_up", "looks NCCL up in a library"),
    Row("two_libraries", "has two copies of NCCL"),
    Row("other_library_first", "looks one copy up, and is linked with the other"),
    Row("plugin", "loads a library that is linked with NCCL"),
    Row("closed_and_opened", "closes NCCL and opens it again"),
    Row("closed_then_a_plugin", "closes one copy, and loads a library linked with another"),
    Row("loaders_race", "eight threads load, call and unload", slow=True),
    Row("forks_while_loading", "forks while others load", slow=True),
    Row("odd_look_ups", "looks up with odd handles, names and versions", segment=False),
    Row("another_namespace", "loads NCCL into another namespace", segment=True),
    Row("calls_in_destructors", "calls when a library is unloaded"),
    Row("unloads_at_exit", "unloads NCCL when it exits"),
    Row("plugin", "binds all at once", environment={"LD_BIND_NOW": "1"}),
    Row("two_libraries", "is audited", environment={"LD_AUDIT": "AUDIT"}),
]
ALLOCATORS = [
    Row("looks_up_itself", "its malloc looks the real one up"),
    Row("has_nothing", "its malloc has nothing to give"),
    Row("locks_in_fork", "its malloc locks, and so do its fork handlers"),
]
EXCEPTIONS = [
    Row("thrown_through_calls", "C++ exceptions pass through calls"),
    Row("calls_in_cpp_destructors", "calls in destructors of threads and of the program"),
]
PYTHON = [
    Row("forks_in_threads", "os.fork in threads", slow=True),
    Row("subinterpreters", "subinterpreters", slow=True),
    Row("dumps_traces", "faulthandler tells of all threads", slow=True),
    Row("dies_with_a_trace", "dies under faulthandler", slow=True),
    Row("takes_signals", "the module signal takes all it can", slow=True),
    Row("ends_with_an_exception", "ends with an exception", slow=True),
    Row("has_its_own_hook", "has its own sys.excepthook", slow=True),
    Row("looks_at_its_hook", "compares sys.excepthook", slow=True),
    Row("looks_at_its_hook_unwatched", "the same, with ROLLCALL_PYTHON_ERRORS=0", slow=True,
        environment={"ROLLCALL_PYTHON_ERRORS": "0"}),
    Row("works_at_exit", "calls in atexit", slow=True),
    Row("spawns", "multiprocessing by fork", slow=True),
    Row("ends_with_a_daemon_thread", "ends while a thread calls", slow=True),
]
LIBC = ["-Wall", "-Wno-format-truncation", "-g", "-pthread"]
# Program -> (compiler, flags).
BUILDS = {
    "threads.c": ("cc", LIBC), "processes.c": ("cc", LIBC), "signals.c": ("cc", LIBC),
    "limits.c": ("cc", LIBC), "files.c": ("cc", LIBC), "loader.c": ("cc", [*LIBC, "-ldl"]),
    "allocator.c": ("cc", [*LIBC, "-O0", "-fno-builtin", "-ldl"]),
    "exceptions.cc": ("c++", LIBC),
}
TABLES = {"threads.c": THREADS, "processes.c": PROCESSES + FOLDERS, "signals.c": SIGNALS,
          "limits.c": LIMITS, "files.c": FILES, "loader.c": LOADER, "allocator.c": ALLOCATORS,
          "exceptions.cc": EXCEPTIONS, "host.py": PYTHON}

# What does not behave alike yet -> what happens. A row that begins to pass must leave this table.
BROKEN = {
    "looks_at_its_hook": "sys.excepthook is ours, by which verdicts know exceptions",
}


def compile_to(out, source, compiler, *flags):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    subprocess.run([compiler, "-o", out, SOURCES / source, *INCLUDES, *flags], check=True)
    return out


@pytest.fixture(scope="session")
def open_folder():
    """open_folder(name) -> a new folder, in which every user may start programs. pytest's are its user's alone."""
    folders = []

    def make(name):
        folders.append(pathlib.Path(tempfile.mkdtemp(prefix=f"hostile-{name}-")))
        folders[-1].chmod(0o711)
        return folders[-1]

    yield make
    for folder in folders:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def nccl(open_folder):
    """A folder with libnccl.so.2, a second copy of it, a library linked with it, and an auditor."""
    folder = open_folder("nccl")
    shared = ["-shared", "-fPIC", "-Wall", "-g"]
    compile_to(folder / "libnccl.so.2", "nccl.c", "cc", *shared, "-Wl,-soname,libnccl.so.2")
    compile_to(folder / "libother.so", "nccl.c", "cc", *shared, "-DCOPY=2",
               "-Wl,-soname,libother.so")
    compile_to(folder / "libplugin.so", "plugin.c", "cc", *shared, f"-L{folder}", "-l:libnccl.so.2")
    compile_to(folder / "libaudit.so", "audit.c", "cc", *shared)
    return folder


@pytest.fixture(scope="session")
def programs(nccl, open_folder):
    folder = open_folder("programs")

    def program(source, compiler=None, *flags):
        if source.endswith(".py"):
            return [sys.executable, SOURCES / source]
        known, known_flags = BUILDS[source]
        out = folder / (source + (compiler or "") + "".join(flags).replace("/", "_"))
        link = [] if source == "loader.c" else [f"-L{nccl}", "-l:libnccl.so.2"]
        if not out.exists():
            compile_to(out, source, compiler or known, *known_flags, *flags, *link)
        return [out]

    return program


def without_core():
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_once(command, row, nccl, preloads):
    """(stdout, exit code, lines on stderr, segments, seconds)"""
    begun = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        place = row.folder(folder)
        environment = {"LD_LIBRARY_PATH": f"{nccl}:{STUBS}", "ROLLCALL_DIR": place,
                       "PATH": os.environ["PATH"], "HOSTILE_NCCL": f"{nccl}/libnccl.so.2",
                       "HOSTILE_OTHER": f"{nccl}/libother.so",
                       "HOSTILE_PLUGIN": f"{nccl}/libplugin.so", **row.environment}
        if "LD_AUDIT" in environment:
            environment["LD_AUDIT"] = f"{nccl}/libaudit.so"
        if preloads:
            environment["LD_PRELOAD"] = ":".join(preloads)
        process = subprocess.Popen(
            [*row.command, *command, row.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", env=environment, cwd=folder, start_new_session=True,
            preexec_fn=without_core)
        try:
            out, said = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, said = process.communicate()
            return out, "deadline", said.splitlines(), None, DEADLINE
        segments = list(folder.rglob("*.seg"))
        return out, process.returncode, said.splitlines(), segments, time.monotonic() - begun
    finally:
        shutil.rmtree(folder)


def check(row, command, nccl, preloads=(LIBRARY,), company=(), library_first=False):
    rounds = min(ROUNDS, 2) if row.slow and ROUNDS <= 5 else ROUNDS
    both = (*preloads, *company) if library_first else (*company, *preloads)
    runs = [company, both] * rounds
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda run: run_once(command, row, nccl, run), runs))
    without, within = results[0::2], results[1::2]
    expected = without[0]
    assert expected[1] not in ("deadline", 126, 127), expected  # what does not start behaves alike, too
    longest = 3 * max(seconds for *_, seconds in without) + 30  # other tests run meanwhile
    for out, code, said, *_ in without:
        assert (out, code) == expected[:2], f"without the library: {said}"
    for out, code, said, segments, seconds in within:
        ours = [line for line in said if line.startswith("rollcall")]
        rest = [line for line in said if not line.startswith("rollcall")]
        assert (out, code) == expected[:2], f"with the library: {said}"
        assert rest == expected[2]
        assert seconds <= longest
        assert len(ours) <= (1 if row.says else 0), ours
        if row.segment is not None:
            assert bool(segments) == row.segment, ours


def rows():
    for source, table in TABLES.items():
        for row in table:
            name = f"{row.name}: {row.does}"
            reason = BROKEN.get(row.does) or BROKEN.get(row.name)
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            yield pytest.param(source, row, id=name, marks=marks)


@pytest.mark.parametrize("source, row", rows())
def test_behaves_alike(programs, nccl, source, row):
    if row.root and not ROOT:
        pytest.skip("only root can do this")
    if row.x86 and platform.machine() != "x86_64":
        pytest.skip("only x86-64 has this")
    check(row, programs(source), nccl)


@pytest.mark.parametrize("source, name", [("threads.c", "eight_creators"), ("files.c", "odd_name"),
                                          ("processes.c", "generations"),
                                          ("signals.c", "calls_at_exit")])
@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_sanitized_program_behaves_alike(programs, nccl, source, name, sanitizer):
    row = Row(name, "", slow=True, environment={
        "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})
    program = programs(source, None, f"-fsanitize={sanitizer}")
    if run_once(program, row, nccl, ())[1] != 7:
        pytest.skip(f"-fsanitize={sanitizer} does not run here")
    check(row, program, nccl)


def test_a_thousand_threads_with_thread_sanitizer_report_no_race(programs, nccl):
    """Where there is little room, which the library says, and blocks of communicators are used again."""
    if not ROOT:
        pytest.skip("only root can do this")
    row = Row("thousand_creators", "", slow=True, segment=None, says=True, folder=lambda folder: "",
              command=own_shared_memory("64m"))
    program = programs("threads.c", None, "-fsanitize=thread")
    if run_once(program, row, nccl, ())[1] != 7:
        pytest.skip("-fsanitize=thread does not run here")
    check(row, program, nccl)


@pytest.mark.parametrize("source, name", [("threads.c", "eight_creators"),
                                          ("processes.c", "fork_storm")])
def test_behaves_alike_under_valgrind(programs, nccl, source, name):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    row = Row(name, "", slow=True, command=("valgrind", "--quiet", "--error-exitcode=9"))
    check(row, programs(source), nccl)


def test_a_search_for_leaks_ends_in_time(programs, nccl):
    """A page that is mapped and has no file behind it costs valgrind a SIGBUS for each word: 26 s in all."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    row = Row("leaks_memory", "", slow=True,
              command=("valgrind", "--log-file=/dev/null", "--leak-check=full"))
    check(row, programs("files.c"), nccl)


@pytest.mark.parametrize("source, name", [("threads.c", "eight_creators"),
                                          ("loader.c", "two_libraries"),
                                          ("loader.c", "odd_look_ups"),
                                          ("processes.c", "fork_storm"),
                                          ("processes.c", "exec_many_times")])
def test_the_library_preloaded_twice_behaves_alike(programs, nccl, tmp_path, source, name):
    shutil.copy(LIBRARY, tmp_path / "librollcall.so")
    row = Row(name, "", segment=source != "loader.c" or name != "odd_look_ups", slow=True)
    check(row, programs(source), nccl, preloads=(LIBRARY, str(tmp_path / "librollcall.so")))


EXIT_MARK = """
#include <stddef.h>
#include <stdio.h>
#include "interpose/segment.h"
int main() { printf("%zu", offsetof(rollcall::segment::SegmentHeader, exit_mark)); }
"""


def test_a_child_of_a_raw_clone_does_not_mark_its_parent_as_ended(
        programs, nccl, tmp_path):
    (tmp_path / "offset.cc").write_text(EXIT_MARK)
    subprocess.run(["c++", "-std=c++17", f"-I{SOURCES.parents[3]}", "-o", tmp_path / "offset",
                    tmp_path / "offset.cc"], check=True)
    offset = int(subprocess.run([tmp_path / "offset"], capture_output=True, check=True).stdout)
    (tmp_path / "segments").mkdir(mode=0o700)
    process = subprocess.run(
        [*programs("processes.c"), "raw_clone_exits"], check=False, capture_output=True,
        timeout=DEADLINE,
        env={"LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": f"{nccl}:{STUBS}",
             "ROLLCALL_DIR": str(tmp_path / "segments")})
    assert process.returncode == 7
    (segment,) = (tmp_path / "segments").glob("*.seg")
    assert segment.read_bytes()[offset:offset + 4] == bytes(4)
