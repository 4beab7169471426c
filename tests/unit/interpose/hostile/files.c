// SPDX-License-Identifier: Apache-2.0
// What happens to the segment's folder and file while the process works; its name, its size.
#include "hostile.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
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
    {0, 0},
};
RUN_NAMED(programs)
