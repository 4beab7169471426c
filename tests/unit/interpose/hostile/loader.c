// SPDX-License-Identifier: Apache-2.0
// The loader: libraries that come and go, odd look-ups, several NCCLs, and allocators that look up.
// Not linked with NCCL; HOSTILE_NCCL, HOSTILE_OTHER and HOSTILE_PLUGIN are paths from the test.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                     \
  do {                                                  \
    if (!(what)) {                                      \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
      fflush(stdout);                                   \
      _exit(1);                                         \
    }                                                   \
  } while (0)

typedef struct {
  __typeof__(&ncclGetUniqueId) get_id;
  __typeof__(&ncclCommInitRank) init;
  __typeof__(&ncclAllReduce) reduce;
  __typeof__(&ncclCommDestroy) destroy;
} Nccl;

static Nccl look_up(void* library) {
  const Nccl nccl = {(__typeof__(nccl.get_id))dlsym(library, "ncclGetUniqueId"),
                     (__typeof__(nccl.init))dlsym(library, "ncclCommInitRank"),
                     (__typeof__(nccl.reduce))dlsym(library, "ncclAllReduce"),
                     (__typeof__(nccl.destroy))dlsym(library, "ncclCommDestroy")};
  CHECK(nccl.get_id != 0 && nccl.init != 0 && nccl.reduce != 0 && nccl.destroy != 0);
  return nccl;
}
static void* load(const char* variable, int flags) {
  void* library = dlopen(getenv(variable), flags);
  if (library == 0) printf("%s\n", dlerror());
  CHECK(library != 0);
  return library;
}
// Gives which copy of NCCL answered.
static int work_with(const Nccl* nccl) {
  ncclUniqueId id;
  ncclComm_t comm;
  int copy = 0;
  CHECK(nccl->get_id(&id) == ncclSuccess && nccl->init(&comm, 2, id, 0) == ncclSuccess);
  CHECK(nccl->reduce(0, &copy, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
  CHECK(nccl->destroy(comm) == ncclSuccess);
  return copy;
}
static int work_in(void* library) {
  const Nccl nccl = look_up(library);
  return work_with(&nccl);
}

static int looked_up(void) {
  CHECK(work_in(load("HOSTILE_NCCL", RTLD_NOW)) == 1);
  return 7;
}
static int two_libraries(void) {
  CHECK(work_in(load("HOSTILE_NCCL", RTLD_NOW)) == 1);
  CHECK(work_in(load("HOSTILE_OTHER", RTLD_NOW)) == 2);
  CHECK(work_in(load("HOSTILE_NCCL", RTLD_NOW)) == 1);
  return 7;
}
// The plugin is linked with the first NCCL; the program has looked the other one up before.
static int other_library_first(void) {
  CHECK(work_in(load("HOSTILE_OTHER", RTLD_NOW)) == 2);
  int (*linked)(void) = (int (*)(void))dlsym(load("HOSTILE_PLUGIN", RTLD_NOW), "hostile_work");
  CHECK(linked != 0);
  const int copy = linked();
  printf("the linked library is copy %d\n", copy);
  return 7;
}
static int plugin(void) {
  int (*linked)(void) = (int (*)(void))dlsym(load("HOSTILE_PLUGIN", RTLD_NOW), "hostile_work");
  CHECK(linked != 0 && linked() == 1);
  return 7;
}
static int closed_and_opened(void) {
  for (int i = 0; i < 20; ++i) {
    void* library = load("HOSTILE_NCCL", RTLD_NOW);
    CHECK(work_in(library) == 1);
    CHECK(dlclose(library) == 0);
  }
  return 7;
}
// Where it was, something else is by then.
static int closed_then_a_plugin(void) {
  void* library = load("HOSTILE_OTHER", RTLD_NOW);
  CHECK(work_in(library) == 2);
  dlclose(library);
  return plugin();
}

static void* open_and_close(void* variable) {
  for (int i = 0; i < 30; ++i) {
    void* library = load((const char*)variable, RTLD_NOW);
    work_in(library);
    dlclose(library);
  }
  return 0;
}
static void* open_plugin_and_close(void* unused) {
  for (int i = 0; i < 30; ++i) {
    void* library = load("HOSTILE_PLUGIN", RTLD_NOW);
    int (*linked)(void) = (int (*)(void))dlsym(library, "hostile_work");
    CHECK(linked != 0 && linked() > 0);
    dlclose(library);
  }
  return unused;
}
static int loaders_race(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) {
    if (i % 2 == 0) {
      pthread_create(&threads[i], 0, open_and_close, "HOSTILE_NCCL");
    } else {
      pthread_create(&threads[i], 0, open_plugin_and_close, 0);
    }
  }
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], 0);
  return 7;
}

static int ignore_object(struct dl_phdr_info* info, size_t size, void* data) {
  return info == 0 || size == 0 || data != 0;
}
static volatile int stop;
static void* iterate(void* unused) {
  while (!stop) dl_iterate_phdr(ignore_object, 0);
  return unused;
}
static int forks_while_loading(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], 0, iterate, 0);
  pthread_create(&threads[1], 0, open_and_close, "HOSTILE_NCCL");
  for (int i = 0; i < 10; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) _exit(3);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
  }
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
  return 7;
}

static int odd_look_ups(void) {
  void* self = dlopen(0, RTLD_NOW);
  CHECK(dlsym(RTLD_DEFAULT, "puts") == dlsym(0, "puts") && dlsym(self, "puts") != 0);
  CHECK(dlsym(RTLD_NEXT, "puts") != 0 && dlerror() == 0);
  CHECK(dlsym(RTLD_DEFAULT, "") == 0 && dlerror() != 0 && dlerror() == 0);
  CHECK(dlsym(self, "ncclNoSuchThing") == 0 && dlerror() != 0 && dlerror() == 0);
  CHECK(dlsym(RTLD_NEXT, "main") == 0 && dlerror() != 0);
  void* library = load("HOSTILE_NCCL", RTLD_NOW);
  CHECK(dlsym(library, "ncclCommShrink") == 0);  // it has none
  const char* why = dlerror();
  CHECK(why != 0 && strstr(why, "undefined symbol: ncclCommShrink") != 0);
  CHECK(dlvsym(self, "puts", "NO_SUCH_VERSION") == 0 && dlerror() != 0);
  CHECK(dlvsym(library, "ncclAllReduce", "GLIBC_2.2.5") == 0 && dlerror() != 0);
  CHECK(dlsym(RTLD_DEFAULT, "dlsym") != 0);
  void* (*found)(void*, const char*) = (void* (*)(void*, const char*))dlsym(RTLD_DEFAULT, "dlsym");
  CHECK(found(RTLD_DEFAULT, "puts") == dlsym(RTLD_DEFAULT, "puts"));
  Dl_info about;
  CHECK(dladdr(dlsym(library, "ncclAllReduce"), &about) != 0);
  dlsym(library, "no_such_function");
  CHECK(dlsym(library, "ncclAllReduce") != 0 && dlerror() == 0);
  return 7;
}

static int another_namespace(void) {
  void* library = dlmopen(LM_ID_NEWLM, getenv("HOSTILE_OTHER"), RTLD_NOW | RTLD_LOCAL);
  CHECK(library != 0 && work_in(library) == 2);
  CHECK(work_in(load("HOSTILE_NCCL", RTLD_NOW)) == 1);
  CHECK(work_in(library) == 2);
  dlclose(library);
  CHECK(work_in(load("HOSTILE_NCCL", RTLD_NOW)) == 1);
  return plugin();
}

static int calls_in_destructors(void) {
  void* library = load("HOSTILE_PLUGIN", RTLD_NOW);
  int (*at_end)(void) = (int (*)(void))dlsym(library, "hostile_work_at_end");
  CHECK(at_end != 0 && at_end() == 0);
  return 7;
}
static int unloaded_at_exit_library;
static void* library_of_exit;
static void unload_at_exit(void) {
  CHECK(work_in(library_of_exit) == 1);
  unloaded_at_exit_library = dlclose(library_of_exit);
}
static int unloads_at_exit(void) {
  library_of_exit = load("HOSTILE_NCCL", RTLD_NOW);
  CHECK(work_in(library_of_exit) == 1);
  atexit(unload_at_exit);
  return 7;
}

static const struct {
  const char* name;
  int (*run)(void);
} programs[] = {
    {"looked_up", looked_up},
    {"two_libraries", two_libraries},
    {"other_library_first", other_library_first},
    {"plugin", plugin},
    {"closed_and_opened", closed_and_opened},
    {"closed_then_a_plugin", closed_then_a_plugin},
    {"loaders_race", loaders_race},
    {"forks_while_loading", forks_while_loading},
    {"odd_look_ups", odd_look_ups},
    {"another_namespace", another_namespace},
    {"calls_in_destructors", calls_in_destructors},
    {"unloads_at_exit", unloads_at_exit},
    {0, 0},
};
int main(int count, char** arguments) {
  for (int i = 0; count > 1 && programs[i].name != 0; ++i) {
    if (strcmp(programs[i].name, arguments[1]) != 0) continue;
    const int code = programs[i].run();
    printf("%s ends with %d\n", programs[i].name, code);
    return code;
  }
  return 99;
}
