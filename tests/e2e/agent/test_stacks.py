# SPDX-License-Identifier: Apache-2.0
"""Stacks of a rank that runs Python: by SIGQUIT, by hand, and where the kernel refuses tracing."""
import ctypes
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import sys
import time

import pytest
from conftest import AS_NOBODY, BUILD, PATIENCE, ROLLCALL, let_everybody_pass_to, needs_another_user, wait_for

JOB = """
import ctypes, os, signal, sys, threading, time
nccl = ctypes.CDLL('libnccl.so.2')
class Id(ctypes.Structure): _fields_ = [('bytes', ctypes.c_byte * 128)]
unique = Id()
comm = ctypes.c_void_p()
before()
assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
lock = threading.Lock()
lock.acquire()
entered = threading.Semaphore(0)
def wait_for_lock():
    entered.release()
    lock.acquire()
def sleep_long():
    entered.release()
    time.sleep(100000)
for target in (wait_for_lock, sleep_long):
    threading.Thread(target=target, daemon=True).start()
    entered.acquire()
after()
# Says it from the inside: a test looks for this function in the stack from then on.
def wait_for_input(said):
    print(said, flush=True)
    return sys.stdin.buffer.raw.read(1)
said = 'ready'
while wait_for_input(said): said = 'alive'
"""


def read_until(stream, pattern, seconds=PATIENCE):
    """Reads lines until one matches, and returns them. The stream must not be buffered."""
    text = ""
    deadline = time.monotonic() + seconds
    while not re.search(pattern, text.rpartition("\n")[0]):
        readable, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
        piece = os.read(stream.fileno(), 65536).decode() if readable else ""
        assert piece, f"{pattern} was never said:\n{text}"
        text += piece
    return text


class Rank:
    def __init__(self, directory, before="pass", after="pass", env=None, through=()):
        script = f"def before():\n    {before}\ndef after():\n    {after}\n{JOB}"
        self.process = subprocess.Popen(
            [*through, sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
                 "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": str(directory),
                 "RANK": "2", "WORLD_SIZE": "3", **(env or {})})
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def quit(self):
        self.process.send_signal(signal.SIGQUIT)

    def is_alive(self):
        self.process.stdin.write("x")
        self.process.stdin.flush()
        readable, _, _ = select.select([self.process.stdout], [], [], 20)
        return bool(readable) and self.process.stdout.readline() == "alive\n"

    def read_stderr_until(self, pattern):
        return read_until(self.process.stderr, pattern)

    def end(self):
        """The exit code, and the rest of stderr."""
        self.process.stdin.close()
        return self.process.wait(timeout=120), self.process.stderr.read()


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "segments"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def start(directory):
    ranks = []

    def start_rank(**options):
        ranks.append(Rank(directory, **options))
        return ranks[-1]

    yield start_rank
    for rank in ranks:
        rank.process.kill()
        rank.process.wait()


@pytest.fixture
def agent(directory):
    process = subprocess.Popen(
        [BUILD / "bin" / "rollcall-agent", f"--dir={directory}", "--daemon=127.0.0.1:1",
         "--scope=directory"],
        stderr=subprocess.DEVNULL)
    while not (directory / "agent.sock").exists():
        time.sleep(0.01)
    yield process
    process.terminate()
    process.wait(timeout=120)


def stacks(*arguments, prepare=None, through=()):
    # A leak checker needs ptrace itself.
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"} if prepare or through else None
    return subprocess.run([*through, ROLLCALL, "stacks", *map(str, arguments)], text=True,
                          timeout=120, capture_output=True, preexec_fn=prepare, env=env)


def test_sigquit_prints_all_stacks_to_the_ranks_stderr_and_it_goes_on(start, agent):
    rank = start()
    rank.quit()
    text = rank.read_stderr_until(r"sleep_long .*\n(.*\n)*.*_bootstrap .*\n(.*\n)*.*libc\.so")
    rank.quit()  # and once more
    rank.read_stderr_until(r"sleep_long .*\n(.*\n)*.*_bootstrap .*\n(.*\n)*.*libc\.so")
    assert f"process {rank.pid}, rank 2, 3 threads" in text
    assert rank.is_alive()
    assert rank.end()[0] == 0


def test_sigquit_without_an_agent_says_in_one_line_which_command_to_type(start):
    rank = start()
    rank.quit()
    said = rank.read_stderr_until("rollcall stacks")
    assert said.count("\n") == 1
    assert f"rank 2, pid {rank.pid}" in said
    assert f"rollcall stacks {rank.pid}" in said
    assert rank.is_alive()


def test_sigquit_works_where_a_shell_has_the_job_ignore_it(start, agent):
    rank = start(before="signal.signal(signal.SIGQUIT, signal.SIG_IGN)")
    rank.quit()
    rank.read_stderr_until(r"wait_for_input ")


def test_sigquit_reaches_the_embedded_agent_of_rollcall_run(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("def before(): pass\ndef after(): print(os.getpid(), flush=True)\n" + JOB)
    run = subprocess.Popen([ROLLCALL, "run", "--sim", f"--report-dir={tmp_path}", "--",
                            sys.executable, script], stdin=subprocess.PIPE, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = int(run.stdout.readline())
    assert run.stdout.readline() == "ready\n"
    os.kill(pid, signal.SIGQUIT)
    read_until(run.stderr, "wait_for_input")
    run.stdin.close()
    assert run.wait(timeout=120) == 0


def test_stacks_finds_a_job_of_this_host_without_a_daemon(start):
    rank = start(env={"ROLLCALL_JOB": "night-run"})
    found = stacks("--daemon=127.0.0.1:1", "night-run")
    assert found.returncode == 0, found.stderr
    assert "only the job's processes on this host" in found.stderr
    assert found.stdout.startswith("[2] 1 rank, 3 threads"), found.stdout
    assert "wait_for_input <string>" in found.stdout
    assert rank.is_alive()


def test_sigquit_does_not_wait_for_a_stderr_that_nobody_reads(start):
    rank = start(after="""
    os.set_blocking(2, False)
    try:
        while True: os.write(2, b"x" * 4096)
    except BlockingIOError: os.set_blocking(2, True)""")
    rank.quit()
    assert rank.is_alive()


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_programs_own_sigquit_handler_stays(start, agent, when):
    rank = start(**{when: "import faulthandler; faulthandler.register(signal.SIGQUIT)"})
    rank.quit()
    said = rank.read_stderr_until("most recent call first")
    assert "rollcall" not in said
    assert rank.is_alive()


def test_sigquit_ends_the_process_with_rollcall_sigquit_0(start, agent):
    rank = start(env={"ROLLCALL_SIGQUIT": "0"})
    rank.quit()
    assert rank.process.wait(timeout=120) == -signal.SIGQUIT


def await_default_action(pid, number):
    for _ in range(200):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        caught = int(re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE).group(1), 16)
        if not caught >> (number - 1) & 1:
            return
        time.sleep(0.05)
    raise AssertionError(f"{pid} keeps its handler")


def test_sigquit_ends_a_child_that_has_no_communicator(start, tmp_path):
    number = tmp_path / "child"
    rank = start(after=f"""child = os.fork()
    if child == 0: time.sleep(1000)
    open('{number}', 'w').write(str(child))
    threading.Thread(target=lambda: print(os.waitpid(child, 0)[1], flush=True)).start()""")
    child = int(number.read_text())
    # The child has its parent's handler until fork() has returned in it.
    await_default_action(child, signal.SIGQUIT)
    os.kill(child, signal.SIGQUIT)
    status = int(rank.process.stdout.readline())
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGQUIT


def test_the_stacks_command_shows_python_and_native_frames(start):
    rank = start()
    result = stacks(rank.pid)
    assert result.returncode == 0, result.stderr
    assert f"process {rank.pid}, rank 2, 3 threads, taken by ptrace" in result.stdout
    for function in ("wait_for_lock", "sleep_long", "wait_for_input"):
        assert re.search(rf"{function}  at <string>:\d+  \[Python\]", result.stdout), result.stdout


def test_stacks_from_inside_leave_out_threads_that_a_signal_would_wake(start):
    rank = start()

    def take():
        result = stacks("--way=inside", rank.pid)
        assert result.returncode == 0, result.stderr
        # A busy machine gives a thread no time to answer.
        return None if "did not answer the signal in time" in result.stdout else result

    result = wait_for(take)
    assert "taken by signal" in result.stdout
    for function in ("wait_for_lock", "sleep_long", "wait_for_input"):
        assert re.search(rf"{function}  at <string>:\d+  \[Python\]", result.stdout), result.stdout
    assert "left alone: a signal would end the system call that it is in" in result.stdout
    # The thread's start function has no name in a libc without debug symbols.
    assert re.search(r"_bootstrap .*\n(.*\n)*.*libc\.so", result.stdout)
    assert rank.is_alive()


def refuse_tracing():
    """Acts like a container's seccomp profile: ptrace and process_vm_readv fail with EPERM."""
    numbers = {"x86_64": (101, 310), "aarch64": (117, 270)}[os.uname().machine]
    load_number = struct.pack("HBBI", 0x20, 0, 0, 0)
    refuse, allow = struct.pack("HBBI", 0x06, 0, 0, 0x00050001), struct.pack("HBBI", 0x06, 0, 0,
                                                                              0x7fff0000)
    jumps = struct.pack("HBBI", 0x15, 1, 0, numbers[0]) + struct.pack("HBBI", 0x15, 0, 1,
                                                                     numbers[1])
    program = ctypes.create_string_buffer(load_number + jumps + refuse + allow)
    descriptor = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", 5, ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(22, 2, descriptor, 0, 0) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        os._exit(97)


def stacks_without_tracing(rank):
    result = stacks(rank.pid, prepare=refuse_tracing)
    if result.returncode == 97:
        pytest.skip("this system permits no seccomp filter")
    return result


def test_stacks_chooses_the_inside_way_where_tracing_is_refused(start):
    rank = start()
    result = stacks_without_tracing(rank)
    assert result.returncode == 0, result.stderr
    assert "taken by signal" in result.stdout
    assert "wait_for_lock  at <string>" in result.stdout


def test_where_both_ways_fail_stacks_prints_both_reasons_and_the_next_command(start):
    rank = start(env={"ROLLCALL_STACK_SIGNAL": "0"})
    result = stacks_without_tracing(rank)
    assert result.returncode == 1
    assert "a seccomp filter forbids this program to trace" in result.stdout + result.stderr
    assert "SYS_PTRACE" in result.stdout + result.stderr
    assert "ROLLCALL_STACK_SIGNAL=0" in result.stdout + result.stderr


# Puts a link to a file of root in the place of each socket that a requester makes in the folder.
SWAPS_SOCKETS = """
import os, sys
folder, target = sys.argv[1:]
print("ready", flush=True)
while True:
    for name in os.listdir(folder):
        if not name.startswith("ask-"):
            continue
        try:
            os.unlink(f"{folder}/{name}")
            os.symlink(target, f"{folder}/{name}")
            print("swapped", flush=True)
        except OSError:
            pass
"""


@needs_another_user
def test_root_gives_no_file_away_to_the_user_whose_process_it_asks(start, directory, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    os.chown(directory, 65534, 65534)
    let_everybody_pass_to(directory / "x")
    rank = start(through=AS_NOBODY)
    assert "taken by signal" in stacks_without_tracing(rank).stdout
    attack = subprocess.Popen([*AS_NOBODY, sys.executable, "-c", SWAPS_SOCKETS, directory, secret],
                              stdout=subprocess.PIPE, text=True)
    try:
        assert attack.stdout.readline() == "ready\n"
        for _ in range(60):
            stacks_without_tracing(rank)
            assert secret.stat().st_uid == 0
    finally:
        attack.kill()
        said = attack.communicate()[0]
    assert "swapped" in said
    assert all(path.lstat().st_uid == 65534 for path in directory.iterdir())


def can_run(*command):
    return subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode == 0


def test_stacks_names_another_user_namespace_as_the_reason(start):
    if not can_run("unshare", "-Ur"):
        pytest.skip("this system permits no user namespaces")
    rank = start(env={"ROLLCALL_STACK_SIGNAL": "0"})
    result = stacks(rank.pid, through=["unshare", "-Ur"])
    assert result.returncode == 1
    assert "it is in another user namespace (this program in user:[" in result.stdout


def test_stacks_names_missing_capabilities_as_the_reason(start):
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    if os.geteuid() != 0 or not can_run(*without):
        pytest.skip("only root has capabilities to give up")
    rank = start(env={"ROLLCALL_STACK_SIGNAL": "0"})
    result = stacks(rank.pid, through=without)
    assert result.returncode == 1
    assert "it has capabilities that this program lacks" in result.stdout
    assert "--cap-add=SYS_PTRACE" in result.stdout


def test_stacks_reports_a_full_stack_area_and_shows_the_thread_states(start, directory):
    rank = start()
    with open(next(directory.glob("*.seg")), "r+b") as segment:
        for slot in range(64):
            segment.seek(12288 + 64 * slot + 8)  # its `claimed`
            segment.write(struct.pack("Q", 4711))
    result = stacks("--way=inside", rank.pid)
    assert "futex" in result.stdout, result.stdout + result.stderr
    assert "no room for its copy" in result.stdout, result.stdout + result.stderr
    assert rank.is_alive()


@pytest.mark.long
def test_stacks_from_inside_show_thread_names_and_the_wait_for_the_lock(start):
    rank = start(after="""
    def spin():
        while True: pass
    for name in ("first spinner", "second spinner"):
        threading.Thread(target=spin, name=name, daemon=True).start()""")
    # The main thread may wait for the lock, too, and each sample shows one moment.
    waits = re.compile(r'thread \d+ "(first|second) spinner" [RS].*, waits for Python\'s lock')
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        shown = stacks("--way=inside", rank.pid).stdout
        if waits.search(shown) and "holds Python's lock" in shown:
            break
    assert waits.search(shown), shown
    assert "holds Python's lock" in shown, shown
    assert '"first spinner"' in shown and '"second spinner"' in shown


@pytest.mark.long
def test_a_program_with_its_own_handler_gets_the_signal_a_few_times_at_most(start):
    rank = start(after="""
    def mine(*_): print("mine", file=sys.stderr, flush=True)
    signal.signal(signal.SIGRTMAX, mine)
    for _ in range(20): threading.Thread(target=wait_for_lock, daemon=True).start()""")
    result = stacks("--way=inside", rank.pid)
    assert "did not answer the signal in time" in result.stdout
    assert "threads that were asked before it did not answer" in result.stdout
    assert rank.is_alive()
    code, said = rank.end()
    assert code == 0 and said.count("mine") <= 3


def test_a_killed_requester_harms_neither_the_rank_nor_the_next_requester(start):
    rank = start()
    for _ in range(20):
        requester = subprocess.Popen([ROLLCALL, "stacks", "--way=inside", str(rank.pid)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.005)
        requester.kill()
        requester.wait()
    assert rank.is_alive()
    result = stacks("--way=inside", rank.pid)
    assert "wait_for_lock  at <string>" in result.stdout, result.stdout + result.stderr


def test_no_requester_uses_a_slot_that_a_late_thread_may_still_write(start, directory):
    rank = start()
    with open(next(directory.glob("*.seg")), "r+b") as segment:
        segment.seek(12288 + 8)  # the first slot's `claimed`
        segment.write(struct.pack("Q", 4711))
    result = stacks("--way=inside", rank.pid)
    for function in ("wait_for_lock", "sleep_long", "wait_for_input"):
        assert f"{function}  at <string>" in result.stdout, result.stdout
    with open(next(directory.glob("*.seg")), "rb") as segment:
        segment.seek(12288)
        asked, claimed, answered = struct.unpack("QQQ", segment.read(24))
    assert (asked, claimed, answered) == (0, 4711, 0)


def test_two_requesters_at_once_do_not_disturb_each_other(start):
    rank = start()
    requesters = [subprocess.Popen([ROLLCALL, "stacks", "--way=inside", str(rank.pid)], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
    answers = [requester.communicate(timeout=120)[0] for requester in requesters]
    assert any("wait_for_lock  at <string>" in answer for answer in answers)
    for answer in answers:
        assert ("wait_for_lock  at <string>" in answer
                or "another program is taking its stacks" in answer), answer
    assert rank.is_alive()
