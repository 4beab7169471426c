// SPDX-License-Identifier: Apache-2.0
// What happens to the segment's folder and file while the process works; its name, its size.
#include "hostile.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

// Does `what` to each file in ROLLCALL_DIR; nothing where there is none.
static void for_each_file(void (*what)(const char*)) {
  const char* folder = getenv("ROLLCALL_DIR");
  DIR* listing = opendir(folder);
  if (listing == 0) return;
  for (struct dirent* entry; (entry = readdir(listing)) != 0;) {
    char path[1024];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    what(path);
  }
  closedir(listing);
}
static int work(void) {
  for (int i = 0; i < 3; ++i) comm = create();
  reduce();
  return 7;
}

static void delete(const char* path) { CHECK(unlink(path) == 0); }
static int file_deleted(void) {
  join_job();
  for_each_file(delete);
  return work();
}
static void replace(const char* path) {
  CHECK(unlink(path) == 0);
  const int fd = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
  CHECK(fd >= 0 && write(fd, "other", 5) == 5);
  close(fd);
}
static int file_replaced(void) {
  join_job();
  for_each_file(replace);
  return work();
}
static void replace_by_pipe(const char* path) {
  CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
}
static int file_becomes_a_pipe(void) {
  join_job();
  for_each_file(replace_by_pipe);
  return work();
}
static int folder_deleted_while_it_works(void) {
  join_job();
  for_each_file(delete);
  rmdir(getenv("ROLLCALL_DIR"));
  return work();
}
static int folder_closed_while_it_works(void) {
  join_job();
  chmod(getenv("ROLLCALL_DIR"), 0);
  work();
  chmod(getenv("ROLLCALL_DIR"), 0700);
  return 7;
}
static int many_files(void) {
  const char* folder = getenv("ROLLCALL_DIR");
  for (int i = 0; i < 500; ++i) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/%d-1.seg", folder, 100000 + i);
    close(open(path, O_CREAT | O_RDWR, 0600));
  }
  join_job();
  return work();
}
static int fills_up(void) {  // in a small file system
  join_job();
  for (int i = 0; i < 60; ++i) comm = create();
  reduce();
  return 7;
}

static int odd_name(void) {
  CHECK(prctl(PR_SET_NAME, ") \n\033[31m)(") == 0);
  join_job();
  return work();
}
static int large_environment(void) {
  char* value = (char*)malloc(100 << 10);
  memset(value, 'x', (100 << 10) - 1);
  value[(100 << 10) - 1] = 0;
  for (int i = 0; i < 50; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "LARGE_%d", i);
    CHECK(setenv(name, value, 1) == 0);
  }
  for (const char* const* name = (const char* const[]){"RANK", "ROLLCALL_JOB", "SLURM_PROCID", 0};
       *name != 0; ++name) {
    CHECK(setenv(*name, value, 1) == 0);
  }
  free(value);
  join_job();
  return work();
}
static int is_a_daemon(void) {
  int ends[2];
  char byte = 0;
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(setsid() > 0);
    if (fork() != 0) _exit(0);
    CHECK(chdir("/") == 0);
    umask(0);
    freopen("/dev/null", "w", stderr);
    join_job();
    work();
    CHECK(write(ends[1], "d", 1) == 1);
    _exit(0);
  }
  close(ends[1]);
  CHECK(waitpid(child, 0, 0) == child && read(ends[0], &byte, 1) == 1 && byte == 'd');
  return 7;
}
static int lets_go_of_children(void) {  // a child without NCCL holds nothing of ours
  join_job();
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    char line[1024];
    FILE* maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps) != 0) {
      if (strstr(line, ".seg") != 0) printf("held\n");
    }
    exit(3);
  }
  CHECK(waitpid(child, 0, 0) == child);
  reduce();
  return 7;
}
static int no_more_processes(void) {
  const struct rlimit few = {1, 1};
  CHECK(setrlimit(RLIMIT_NPROC, &few) == 0);
  join_job();
  return work();
}

// Reads all that a search for pointers in memory would read of the segment.
static void read_what_is_mapped(void) {
  char line[1024];
  volatile char byte = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != 0);
  while (fgets(line, sizeof(line), maps) != 0) {
    unsigned long begin, end, offset;
    char rights[5];
    struct stat about;
    char* path = strchr(line, '/');
    if (sscanf(line, "%lx-%lx %4s %lx", &begin, &end, rights, &offset) != 4) continue;
    if (rights[0] != 'r' || path == 0 || strstr(path, ".seg") == 0) continue;
    path[strcspn(path, "\n")] = 0;
    CHECK(stat(path, &about) == 0);
    CHECK(offset + (end - begin) <= ((unsigned long)about.st_size + 65535) / 65536 * 65536);
    for (; begin < end; begin += 4096) byte = *(volatile char*)begin;
  }
  (void)byte;
  fclose(maps);
}
static int maps_no_more_than_the_file(void) {
  join_job();
  read_what_is_mapped();
  for (int i = 0; i < 20; ++i) {
    work();
    read_what_is_mapped();
  }
  return 7;
}
static void truncate_it(const char* path) { CHECK(truncate(path, 0) == 0); }
static int truncated_at(int signal_stack) {
  static char memory[64 << 10];
  const stack_t stack = {memory, 0, sizeof(memory)};
  join_job();
  if (signal_stack) CHECK(sigaltstack(&stack, 0) == 0);
  for_each_file(truncate_it);
  for (int i = 0; i < 100; ++i) reduce();
  return work();
}
static int file_truncated(void) { return truncated_at(0); }
static int file_truncated_with_a_signal_stack(void) { return truncated_at(1); }
// What replaces the file leaves the process nearly all the memory that it may still have.
static int file_truncated_with_little_memory(void) {
  char line[256];
  unsigned long kilobytes = 0;
  FILE* status = fopen("/proc/self/status", "r");
  join_job();
  while (fgets(line, sizeof(line), status) != 0) sscanf(line, "VmData: %lu", &kilobytes);
  fclose(status);
  const rlim_t most = (kilobytes << 10) + (16 << 20);
  const struct rlimit both = {most, most};
  CHECK(kilobytes > 0 && setrlimit(RLIMIT_DATA, &both) == 0);
  for_each_file(truncate_it);
  for (int i = 0; i < 100; ++i) reduce();
  CHECK(mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
  return work();
}
static void* reduce_often(void* unused) {
  for (int i = 0; i < 50000; ++i) reduce();
  return unused;
}
static int file_truncated_under_threads(void) {
  pthread_t threads[4];
  join_job();
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, reduce_often, 0);
  usleep(1000);
  for_each_file(truncate_it);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
  return work();
}
static void say_and_end(int number) {
  static const char text[] = "the program's own handler\n";
  (void)number;
  if (write(1, text, sizeof(text) - 1) > 0) _exit(5);
}
static int faults_by_itself(int own_handler) {
  char path[] = "/tmp/rollcall-hostile-XXXXXX";
  const int fd = mkstemp(path);
  join_job();
  CHECK(fd >= 0 && unlink(path) == 0);
  volatile char* page = (volatile char*)mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (own_handler) signal(SIGBUS, say_and_end);
  fflush(stdout);
  return page[0];
}
static int faults_in_its_own_memory(void) { return faults_by_itself(0); }
static int handles_its_own_faults(void) { return faults_by_itself(1); }
static int is_sent_a_bus_error(void) {
  join_job();
  fflush(stdout);
  kill(getpid(), SIGBUS);
  pause();
  return 1;
}
static int child_dies_by_a_bus_error(void) {
  struct sigaction current;
  int status = 0;
  join_job();
  const pid_t child = fork();
  if (child == 0) {
    CHECK(sigaction(SIGBUS, 0, &current) == 0 && current.sa_handler == SIG_DFL);
    raise(SIGBUS);
    _exit(1);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
  return 7;
}

static void* volatile lost;
static int leaks_memory(void) {
  lost = malloc(100);
  lost = 0;
  join_job();
  return work();
}

static const struct Program programs[] = {
    {"file_deleted", file_deleted},
    {"file_replaced", file_replaced},
    {"file_becomes_a_pipe", file_becomes_a_pipe},
    {"folder_deleted_while_it_works", folder_deleted_while_it_works},
    {"folder_closed_while_it_works", folder_closed_while_it_works},
    {"many_files", many_files},
    {"fills_up", fills_up},
    {"odd_name", odd_name},
    {"large_environment", large_environment},
    {"is_a_daemon", is_a_daemon},
    {"lets_go_of_children", lets_go_of_children},
    {"no_more_processes", no_more_processes},
    {"maps_no_more_than_the_file", maps_no_more_than_the_file},
    {"leaks_memory", leaks_memory},
    {"file_truncated", file_truncated},
    {"file_truncated_with_a_signal_stack", file_truncated_with_a_signal_stack},
    {"file_truncated_with_little_memory", file_truncated_with_little_memory},
    {"file_truncated_under_threads", file_truncated_under_threads},
    {"faults_in_its_own_memory", faults_in_its_own_memory},
    {"handles_its_own_faults", handles_its_own_faults},
    {"is_sent_a_bus_error", is_sent_a_bus_error},
    {"child_dies_by_a_bus_error", child_dies_by_a_bus_error},
    {0, 0},
};
RUN_NAMED(programs)
