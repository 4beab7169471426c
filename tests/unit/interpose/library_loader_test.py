# SPDX-License-Identifier: Apache-2.0
"""librollcall.so and the dynamic loader. The objects whose addresses the library remembers stay
loaded. The library never deadlocks with the program's own dlopen, and can itself be loaded late."""
import os
import pathlib
import subprocess

import pytest

LIBRARY = os.environ["ROLLCALL_LIBRARY"]
STUBS = pathlib.Path(os.environ["ROLLCALL_STUB_DIR"])
RANKS = [os.environ["RANKS"], "-n", "4", os.environ["STATIC_NCCL_PROGRAM"]]
SIM = os.environ["ROLLCALL_SIM_DIR"]


@pytest.fixture
def build(tmp_path):
    """build(name, source, flags...) -> path"""

    def compile_it(name, source, *flags):
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(["cc", "-O0", "-o", tmp_path / name, tmp_path / f"{name}.c", *flags],
                       check=True)
        return tmp_path / name

    return compile_it


@pytest.fixture
def go(tmp_path):
    """go(command, environment) -> the finished process, by default with the library preloaded."""
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)

    def run(command, environment=None, timeout=120):
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout,
            env={"LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": f"{STUBS}:{tmp_path}",
                 "ROLLCALL_DIR": str(segments), "PATH": os.environ["PATH"],
                 **(environment or {})})

    run.segments = segments
    return run


# Looks a function up, closes its library, lets something else have the addresses, and calls it
# through another library that is linked with it.
CLOSES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char** argv) {
  void* library = SPACE(argv[1]);
  if (library == NULL) return 2;
  char* found = dlsym(library, argv[2]);
  Dl_info about;
  void* real = dlsym(library, argv[3]);
  if (found == NULL || real == NULL || dladdr(real, &about) == 0) return 3;
  char* base = about.dli_fbase;
  dlclose(library);
  for (int page = 0; page < 64; ++page) {
    char* at = mmap(base + page * 4096, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != MAP_FAILED) memset(at, 0xff, 4096);
  }
  void* caller = dlopen(argv[4], RTLD_NOW | RTLD_LOCAL);
  if (caller == NULL) return fprintf(stderr, "%s\n", dlerror()), 4;
  int (*call)(void) = dlsym(caller, argv[5]);
  return call == NULL ? 5 : call();
}
"""


@pytest.mark.parametrize("space", ["dlopen(name, RTLD_NOW | RTLD_LOCAL)",
                                   "dlmopen(LM_ID_NEWLM, name, RTLD_NOW | RTLD_LOCAL)"],
                         ids=["same_namespace", "new_namespace"])
@pytest.mark.parametrize("function", ["ncclGroupStart", "cudaDeviceSynchronize", "cuCtxSynchronize",
                                      "hipDeviceSynchronize", "MPI_Barrier"])
def test_a_bound_function_keeps_its_address_after_dlclose(build, go, tmp_path,
                                                                       function, space):
    twin = {"n": "p", "M": "P"}.get(function[0], "") + function
    source = f"int {function}(void) {{ return 0; }} int marker(void) {{ return 1; }}"
    if twin != function:
        source += f" int {twin}(void) {{ return 0; }}"
    build("libreal.so", source, "-shared", "-fPIC")
    caller = build("caller.so", f"int {function}(void); int call(void) {{ return {function}(); }}",
                   "-shared", "-fPIC", f"-L{tmp_path}", "-lreal")
    program = build("program", CLOSES, f"-DSPACE(name)={space}", "-ldl")
    done = go([program, tmp_path / "libreal.so", function, "marker", caller, "call"])
    assert (done.returncode, done.stderr) == (0, "")


def test_nccl_works_again_after_a_look_up_and_dlclose(build, go):
    program = build("program", CLOSES, "-DSPACE(name)=dlopen(name, RTLD_NOW)", "-ldl")
    done = go([program, STUBS / "libnccl.so.2", "ncclAllReduce", "pncclAllReduce",
               STUBS / "liblibrary_steps_plugin.so", "plugin_linked"])
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(go.segments.iterdir())) == 1


# The first NCCL calls, which must be looked for among all that is loaded, while other threads load
# and unload.
LOADS = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static volatile int started;
static void* load(void* name) {
  __sync_fetch_and_add(&started, 1);
  for (;;) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) dlclose(library);
  }
}
int main(int argc, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*run)(void) = plugin == NULL ? NULL : dlsym(plugin, "plugin_linked");
  if (run == NULL) return 2;
  for (int i = 0; i < 8; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, load, argv[2 + i % 2]);
  }
  while (started < 8) {}
  _Exit(run());
}
"""


def test_first_calls_beside_eight_threads_that_load_and_unload_never_deadlock(build, go, tmp_path):
    program = build("program", LOADS, "-ldl", "-pthread")
    others = [build(f"lib{name}.so", f"int nobodys_{name};", "-shared", "-fPIC")
              for name in ("a", "b")]
    for _ in range(60):
        done = go([program, STUBS / "liblibrary_steps_plugin_static.so", *others], timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


# Loads a plugin as NCCL does: opens it late, gets its table, closes it.
PLUGIN_HOST = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
struct table {
  const char* name;
  int (*init)(void**, uint64_t, int*, const char*, int, int, int, void*);
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*record)(void*, int, void*);
  int (*finalize)(void*);
};
int main(int argc, char** argv) {
  if (argv[2] != NULL && dlopen(argv[2], RTLD_NOW) == NULL)
    return fprintf(stderr, "%s\n", dlerror()), 9;
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
  struct table* table = dlsym(plugin, "ncclProfiler_v5");
  if (table == NULL) return 3;
  void *context = NULL, *group = NULL, *handle = NULL;
  int mask = 0;
  if (table->init(&context, 77, &mask, "dp", 1, 2, 1, NULL) != 0 || mask == 0) return 4;
  struct { uint64_t type; void* parent; int rank; } begin = {256, NULL, 1};
  struct { uint64_t type; void* parent; int rank; const char* function; size_t count;
           const char* datatype; int root; void* stream; char captured; }
      call = {512, NULL, 1, "AllReduce", 8, "ncclFloat32", 0, NULL, 0};
  for (int i = 0; i < 3; ++i) {
    if (table->start(context, &group, &begin) != 0) return 5;
    if (table->start(context, &handle, &call) != 0) return 6;
    table->stop(group);
  }
  table->finalize(context);
  dlclose(plugin);
  // The handlers that the library has installed remain after dlclose().
  pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 1;
  waitpid(child, &status, 0);
  union sigval value = {0};
  for (int number = SIGRTMAX; number >= 35; --number) {
    struct sigaction now;
    sigaction(number, NULL, &now);
    if (now.sa_sigaction != NULL) sigqueue(getpid(), number, value);
  }
  return status;
}
"""


@pytest.mark.parametrize("used", [0, 512, 1400])
def test_nccl_can_load_and_close_the_library_late_as_a_plugin(build, go, tmp_path, used):
    """Also where other libraries have taken most of what glibc keeps for late thread-locals."""
    program = build("program", PLUGIN_HOST, "-ldl")
    command = [program, LIBRARY]
    if used:
        command.append(build(
            "used.so", f"__thread char taken[{used}]; char* get(void) {{ return taken; }}",
            "-shared", "-fPIC", "-ftls-model=initial-exec"))
    done = go(command, {"LD_PRELOAD": ""})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(go.segments.iterdir())) == 1


def test_the_plugin_alone_records_a_program_with_a_static_nccl(go):
    done = go(RANKS, {"LD_PRELOAD": "", "NCCL_PROFILER_PLUGIN": LIBRARY, "LD_LIBRARY_PATH": SIM})
    assert done.returncode == 0, done.stderr
    assert len(list(go.segments.iterdir())) == 4
