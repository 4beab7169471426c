# SPDX-License-Identifier: Apache-2.0
"""librollcall.so beside other preloaded libraries, and in programs that do not use NCCL."""
import ctypes.util
import os
import pathlib
import resource
import shutil
import subprocess

import pytest

LIBRARY = os.environ["ROLLCALL_LIBRARY"]
STUBS = os.environ["ROLLCALL_STUB_DIR"]
STEPS = [os.environ["LIBRARY_STEPS"], "id", "init=2,0", "all_reduce", "all_reduce"]


@pytest.fixture
def go(tmp_path):
    """go(command, preloads, ...) -> (exit code, stderr, number of segments)."""
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)

    def run(command, preloads=(LIBRARY,), environment=None, limits=None):
        def limit():
            for what, value in (limits or {}).items():
                resource.setrlimit(what, (value, value))

        process = subprocess.run(
            command, capture_output=True, text=True, timeout=120, preexec_fn=limit,
            env={"LD_PRELOAD": ":".join(preloads), "LD_LIBRARY_PATH": STUBS,
                 "ROLLCALL_DIR": str(segments), "PATH": os.environ["PATH"], "HOME": str(tmp_path),
                 **(environment or {})})
        return process.returncode, process.stderr, len(list(segments.iterdir()))

    return run


def allocator(name):
    found = ctypes.util.find_library(name)
    if found is None:
        pytest.skip(f"lib{name} is not installed")
    return found


def sanitizer():
    path = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True,
                          check=True).stdout.strip()
    if not os.path.isabs(path):
        pytest.skip("the compiler came without libasan")
    # The file may be a script for the linker.
    return str(next(pathlib.Path(path).parent.glob("libasan.so*")))


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc_minimal"])
@pytest.mark.parametrize("first", [True, False])
def test_works_beside_another_allocator(go, name, first):
    preloads = [LIBRARY, allocator(name)] if first else [allocator(name), LIBRARY]
    assert go(STEPS, preloads) == (0, "", 1)


def test_works_behind_a_sanitizer(go):
    assert go(STEPS, [sanitizer(), LIBRARY], {"ASAN_OPTIONS": "detect_leaks=0"}) == (0, "", 1)


def test_works_in_a_program_that_binds_all_symbols_at_once(go):
    assert go(STEPS, environment={"LD_BIND_NOW": "1"}) == (0, "", 1)


@pytest.mark.parametrize("limits, steps",
                         [({resource.RLIMIT_NOFILE: 64}, ["use_up_descriptors"]),
                          ({resource.RLIMIT_AS: 40 << 20}, [])],
                         ids=["no_descriptor", "no_address_space"])
def test_without_room_the_job_runs_and_one_line_says_so(go, limits, steps):
    exit_code, said, segments = go([STEPS[0], *steps, *STEPS[1:]], limits=limits)
    assert exit_code == 0 and segments == 0
    assert said.count("\n") == 1 and "not recording, training unaffected" in said


PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void* puts_address = dlsym(RTLD_DEFAULT, "puts");
  void* missing = dlsym(RTLD_DEFAULT, "no_such_function");
  return puts_address != 0 && missing == 0 && dlerror() != 0 ? 7 : 1;
}
"""


def compiled(tmp_path, compiler, source, *flags):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "program.c").write_text(source)
    subprocess.run([compiler, "-o", tmp_path / "program", tmp_path / "program.c", *flags],
                   check=True)
    return tmp_path / "program"


def test_a_program_of_another_c_library_runs_unchanged(go, tmp_path):
    program = compiled(tmp_path, "musl-gcc", PROGRAM)
    assert go([program]) == (7, "", 0)


def test_a_static_program_runs_unchanged(go, tmp_path):
    program = compiled(tmp_path, "cc", "int main(void) { return 7; }", "-static-pie")
    assert go([program]) == (7, "", 0)


# A job that calls NCCL and does one odd thing; ends with 7 if all went well.
ODD_JOB = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static ncclComm_t comm;
static float data[8];

static void join_job(void) {
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) exit(1);
  if (ncclCommInitRank(&comm, 2, id, 0) != ncclSuccess) exit(1);
}
static int reduce(void) {
  return ncclAllReduce(data, data, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess;
}
static void* reduce_for_ever(void* unused) {
  for (;;) {
    reduce();
    pthread_testcancel();
  }
  return unused;
}
static void* reduce_without_end(void* unused) {
  for (;;) reduce();
  return unused;
}

static int vfork_and_exec(void) {
  for (int i = 0; i < 100; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", (char*)0);
      _exit(1);
    }
    int status = -1;
    if (!reduce() || waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return 7;
}

static int threads_at_exit(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, reduce_without_end, 0);
  usleep(20000);
  exit(7);
}

static int cancelled_threads(void) {
  for (int i = 0; i < 300; ++i) {  // more than there is room for at once
    pthread_t thread;
    void* result = 0;
    pthread_create(&thread, 0, reduce_for_ever, 0);
    usleep(200);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED || !reduce()) return 1;
  }
  return 7;
}

static volatile sig_atomic_t interrupted;
static void on_alarm(int number) { interrupted += number == SIGALRM; }

static int signals_in_calls(void) {
  const struct itimerval often = {{0, 100}, {0, 100}};
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (long i = 0; interrupted < 500; ++i) {
    errno = 4711;
    if (!reduce() || errno != 4711) return 1;
  }
  return 7;
}

static int another_root(void) {  // where there is no /dev/shm
  char root[] = "/tmp/rollcall-root-XXXXXX";
  if (mkdtemp(root) == 0 || chroot(root) != 0 || chdir("/") != 0) return 1;
  join_job();
  return reduce() ? 7 : 1;
}

int main(int count, char** arguments) {
  const char* odd = count > 1 ? arguments[1] : "";
  if (strcmp(odd, "another_root") == 0) return another_root();
  join_job();
  if (!reduce()) return 1;
  if (strcmp(odd, "vfork_and_exec") == 0) return vfork_and_exec();
  if (strcmp(odd, "threads_at_exit") == 0) return threads_at_exit();
  if (strcmp(odd, "cancelled_threads") == 0) return cancelled_threads();
  if (strcmp(odd, "signals_in_calls") == 0) return signals_in_calls();
  return 7;
}
"""
NCCL_FLAGS = [f"-I{os.environ['NCCL_INCLUDE_DIR']}", f"-I{os.environ['CUDA_INCLUDE_DIR']}",
              "-Wno-format-truncation", "-pthread", f"-L{STUBS}", "-l:libnccl.so.2"]


@pytest.mark.parametrize("odd", ["vfork_and_exec", "threads_at_exit", "cancelled_threads",
                                 "signals_in_calls"])
def test_an_odd_job_runs_and_is_recorded(go, tmp_path, odd):
    program = compiled(tmp_path, "cc", ODD_JOB, *NCCL_FLAGS)
    assert go([program, odd]) == (7, "", 1)


def test_in_another_root_without_memory_files_the_job_runs_and_one_line_says_so(go, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may change its root")
    program = compiled(tmp_path, "cc", ODD_JOB, *NCCL_FLAGS)
    exit_code, said, segments = go([program, "another_root"],
                                   environment={"ROLLCALL_DIR": "/dev/shm/rollcall-nowhere"})
    assert (exit_code, segments) == (7, 0)
    assert said.count("\n") == 1 and "not recording, training unaffected" in said


def test_a_setuid_program_runs_without_the_library(go, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can make a program of another user's")
    program = compiled(tmp_path, "cc", "int main(void) { return 7; }")
    directory = pathlib.Path("/tmp") / f"rollcall-setuid-{os.getpid()}"
    directory.mkdir(mode=0o755)
    try:
        shutil.copy(program, directory / "program")
        os.chmod(directory / "program", 0o4755)
        go_as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", directory / "program"]
        assert go(go_as_nobody) == (7, "", 0)
    finally:
        shutil.rmtree(directory)


OTHER_DLSYM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
static void* (*next)(void*, const char*);
__attribute__((constructor)) static void find(void) {
  next = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", VERSION);
}
void* dlsym(void* handle, const char* name) {
  if (next == 0) find();
  return next(handle, name);
}
"""
LOOKS_UP = r"""
#include <dlfcn.h>
#include <nccl.h>
int main(void) {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  ncclResult_t (*get_id)(ncclUniqueId*) = dlsym(library, "ncclGetUniqueId");
  ncclResult_t (*init)(ncclComm_t*, int, ncclUniqueId, int) = dlsym(library, "ncclCommInitRank");
  ncclUniqueId id;
  ncclComm_t comm;
  return get_id(&id) == ncclSuccess && init(&comm, 2, id, 0) == ncclSuccess ? 7 : 1;
}
"""


@pytest.mark.parametrize("first", [True, False], ids=["before_it", "behind_it"])
def test_works_beside_another_interposer_of_dlsym(go, tmp_path, first):
    version = '"GLIBC_2.2.5"' if os.uname().machine == "x86_64" else '"GLIBC_2.17"'
    other = compiled(tmp_path, "cc", OTHER_DLSYM, "-shared", "-fPIC", f"-DVERSION={version}",
                     "-ldl")
    other = other.rename(tmp_path / "libother.so")
    program = compiled(tmp_path, "cc", LOOKS_UP, *NCCL_FLAGS[:3], "-ldl")
    exit_code, said, segments = go([program], [LIBRARY, str(other)] if first else
                                   [str(other), LIBRARY])
    assert (exit_code, said) == (7, "")
    # One that comes before ours and asks libc's dlsym by its version passes us over.
    assert segments == (1 if first else 0)


def test_a_program_with_an_empty_environment_runs_without_the_library(go, tmp_path):
    program = compiled(tmp_path, "cc", LOOKS_UP, *NCCL_FLAGS[:3], "-ldl")
    assert go(["env", "-i", f"LD_LIBRARY_PATH={STUBS}", program]) == (7, "", 0)


CLOCK_SOURCE_AT = 512  # in SegmentHeader; 0: CLOCK_MONOTONIC, 1: the CPU's counter


@pytest.mark.parametrize("listed, source", [("tsc hpet acpi_pm", 1), ("hpet acpi_pm", 0)])
def test_a_counter_that_the_kernel_does_not_trust_is_not_used(go, tmp_path, listed, source):
    clocks = pathlib.Path("/sys/devices/system/clocksource/clocksource0/available_clocksource")
    if not clocks.exists() or "constant_tsc" not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no such counter")
    (tmp_path / "list").write_text(listed + "\n")
    with_list = ["unshare", "--mount", "sh", "-c",
                 f'mount --bind "{tmp_path}/list" {clocks} && exec "$@"', "sh"]
    if subprocess.run([*with_list, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount")
    assert go([*with_list, *STEPS]) == (0, "", 1)
    (segment,) = (tmp_path / "segments").glob("*.seg")
    bytes_read = segment.read_bytes()[CLOCK_SOURCE_AT:CLOCK_SOURCE_AT + 4]
    assert int.from_bytes(bytes_read, "little") == source


# The library distinguishes the two MPIs by a variable that only one of them has. The search for it
# must load nothing: NCCL starts threads, and a file of that name lies where the program may find
# it.
MPI_ALONE = r"""
#include <dlfcn.h>
#include <mpi.h>
int main(void) {
  int value = 1, sum = 0;
  MPI_Init(0, 0);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Sendrecv(&value, 1, MPI_INT, 0, 7, &sum, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int loaded = dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY) != 0;
  MPI_Finalize();
  return loaded ? 1 : 7;
}
"""


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_job_of_mpi_alone_is_recorded_and_loads_no_nccl(go, tmp_path, name):
    assert (pathlib.Path(STUBS) / "libnccl.so.2").exists()
    program = compiled(tmp_path, f"mpicc.{name}", MPI_ALONE, "-ldl")
    exit_code, _, segments = go([program],
                                environment={"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert (exit_code, segments) == (7, 1)
    assert b"MPI_COMM_WORLD" in next((tmp_path / "segments").glob("*.seg")).read_bytes()


# Uses up the table of communicators, makes an MPI call, and another one when there is room again.
FULL_TABLE = r"""
#include <mpi.h>
#include <nccl.h>
int main(void) {
  ncclUniqueId id;
  ncclComm_t comms[1024];
  ncclGetUniqueId(&id);
  for (int i = 0; i < 1024; ++i) ncclCommInitRank(&comms[i], 2, id, 0);
  MPI_Init(0, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  ncclCommDestroy(comms[5]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 7;
}
"""


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_an_mpi_world_without_room_at_its_first_call_is_not_recorded_later(go, tmp_path, name):
    program = compiled(tmp_path, f"mpicc.{name}", FULL_TABLE, *NCCL_FLAGS)
    exit_code, _, segments = go([program],
                                environment={"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert (exit_code, segments) == (7, 1)
    # Its positions would not be those of other ranks.
    assert b"MPI_COMM_WORLD" not in next((tmp_path / "segments").glob("*.seg")).read_bytes()
