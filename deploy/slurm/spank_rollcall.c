// SPDX-License-Identifier: Apache-2.0
// SPANK plugin: srun, sbatch and salloc --rollcall[=observe|abort|off].
//
// slurmstepd calls it in each task, as the job's user, just before the task's program starts. It
// puts the library into LD_PRELOAD and names the job. In srun it starts the watcher of the step,
// which prints the verdict and keeps the report in the job's folder.
//
// It fails no job: whatever goes wrong is logged, and every function returns success. Slurm has no
// stable interface for plugins, so it must be compiled against the very release that loads it
// (deploy/slurm/build.sh). It needs nothing but libc and Slurm.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(rollcall, 1)

enum { kLongestValue = 65536, kLongestName = 256, kMostComponents = 128 };
// Above it are the batch script's and other numbers that are not step's.
static const uint32_t kHighestStep = 0xfffffff0u;
enum level { kUnset, kOff, kObserve, kAbort };

static const char kLibraryName[] = "librollcall.so";

// The arguments in plugstack.conf.
static struct {
  char library[PATH_MAX];
  // below it, each user has a folder for segments; empty means the library's default
  char dir[PATH_MAX];
  char watch[PATH_MAX];   // the program that watches a step
  char daemon[PATH_MAX];  // empty means no step is watched
  char tls_ca[PATH_MAX];
  char token_file[PATH_MAX];
  enum level fallback;  // without --rollcall and ROLLCALL
} settings = {
    "/usr/lib/rollcall/librollcall.so", "", "/usr/lib/rollcall/slurm/watch-step", "", "", "", kOff};

static enum level option = kUnset;  // of --rollcall

static enum level parse_level(const char* text) {
  // Slurm hands an option without an argument on from sbatch to srun as "(null)".
  if (text == NULL || *text == '\0' || strcmp(text, "(null)") == 0) return kObserve;
  static const struct {
    const char* word;
    enum level level;
  } kWords[] = {{"observe", kObserve}, {"on", kObserve}, {"1", kObserve},
                {"abort", kAbort},     {"off", kOff},    {"0", kOff}};
  for (size_t i = 0; i < sizeof(kWords) / sizeof(kWords[0]); ++i) {
    if (strcmp(text, kWords[i].word) == 0) return kWords[i].level;
  }
  return kUnset;
}

// A mistyped level must not end a job that waited for days: the job is observed.
static int on_option(int value, const char* argument, int remote) {
  (void)value;
  option = parse_level(argument);
  if (option != kUnset) return ESPANK_SUCCESS;
  option = kObserve;
  if (!remote) {
    slurm_error("rollcall: --rollcall takes observe, abort or off, not %s; this job is observed",
                argument);
  }
  return ESPANK_SUCCESS;
}

static struct spank_option rollcall_option = {
    "rollcall",
    "observe|abort|off",
    "find out why the job hangs; abort: end the step when it hangs (default: observe)",
    2 /* the argument is optional */,
    0,
    on_option};

// Copies the value of "NAME=value" into `out`; false if the argument has another name.
static bool take(const char* argument, const char* name, char* out) {
  const size_t length = strlen(name);
  if (strncmp(argument, name, length) != 0 || argument[length] != '=') return false;
  snprintf(out, PATH_MAX, "%s", argument + length + 1);
  return true;
}

static void parse_argument(const char* argument) {
  char fallback[PATH_MAX] = "";
  if (take(argument, "library", settings.library) || take(argument, "dir", settings.dir) ||
      take(argument, "watch", settings.watch) || take(argument, "daemon", settings.daemon) ||
      take(argument, "tls-ca", settings.tls_ca) ||
      take(argument, "token-file", settings.token_file)) {
    return;
  }
  const enum level level = take(argument, "default", fallback) ? parse_level(fallback) : kUnset;
  if (level != kUnset) {
    settings.fallback = level;
  } else {
    slurm_error(
        "rollcall: plugstack.conf: unknown argument %s; known: library= dir= daemon= "
        "tls-ca= token-file= watch= default=observe|abort|off",
        argument);
  }
}

int slurm_spank_init(spank_t spank, int count, char** arguments) {
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) {
    return ESPANK_SUCCESS;
  }
  for (int i = 0; i < count; ++i) parse_argument(arguments[i]);
  if (spank_option_register(spank, &rollcall_option) != ESPANK_SUCCESS) {
    slurm_error("rollcall: Slurm does not take the option --rollcall");
  }
  return ESPANK_SUCCESS;
}

// --- In the task.

// One line in the job's standard error, from the job's first task only.
static void __attribute__((format(printf, 2, 3))) say(spank_t spank, const char* format, ...) {
  uint32_t task = 0;
  if (spank_get_item(spank, S_TASK_GLOBAL_ID, &task) != ESPANK_SUCCESS || task != 0) return;
  char text[PATH_MAX + 256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  slurm_spank_log("rollcall: %s", text);
}

// The value of a variable of the task in memory that the caller frees. Empty if unset. NULL if it
// is too long, or without memory.
static char* get(spank_t spank, const char* name) {
  char* value = malloc(kLongestValue);
  if (value == NULL) return NULL;
  const spank_err_t error = spank_getenv(spank, name, value, kLongestValue);
  if (error == ESPANK_ENV_NOEXIST) {
    *value = '\0';
  } else if (error != ESPANK_SUCCESS) {
    free(value);
    return NULL;
  }
  return value;
}

static bool is_set(spank_t spank, const char* name) {
  char* value = get(spank, name);
  const bool is = value == NULL || *value != '\0';
  free(value);
  return is;
}

static void set_if_unset(spank_t spank, const char* name, const char* value) {
  if (!is_set(spank, name)) spank_setenv(spank, name, value, 1);
}

static bool is_library(const char* path, size_t length) {
  const size_t name = sizeof(kLibraryName) - 1;
  return length >= name && strncmp(path + length - name, kLibraryName, name) == 0 &&
         (length == name || path[length - name - 1] == '/');
}

// Why the dynamic linker of this machine would not load the file; NULL if it would.
static const char* why_not_loadable(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return strerror(errno);
  Elf64_Ehdr wanted, header;
  struct stat about;
  const int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const bool knows_own = own >= 0 && read(own, &wanted, sizeof(wanted)) == (ssize_t)sizeof(wanted);
  if (own >= 0) close(own);
  const bool is_file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  const bool is_whole =
      is_file && read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header) &&
      memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
      (uint64_t)about.st_size >= header.e_shoff + (uint64_t)header.e_shentsize * header.e_shnum;
  close(fd);
  if (!is_whole) return "it is damaged";
  if (knows_own && (header.e_ident[EI_CLASS] != wanted.e_ident[EI_CLASS] ||
                    header.e_machine != wanted.e_machine)) {
    return "it is for another CPU";
  }
  return NULL;
}

// LD_PRELOAD without the libraries of Rollcall, and with `library` in front (NULL for no library).
// A library that is there already and loads stays in its place. The caller frees. NULL without
// memory.
static char* with_library(const char* old, const char* library) {
  char* out = malloc(strlen(old) + PATH_MAX + 2);
  if (out == NULL) return NULL;
  bool has_it = false;
  size_t end = 0;
  for (const char* at = old; *at != '\0';) {
    const size_t length = strcspn(at, ": ");
    bool keep = length > 0;
    if (keep && is_library(at, length)) {
      char path[PATH_MAX];
      snprintf(path, sizeof(path), "%.*s", (int)length, at);
      keep = library != NULL && !has_it &&
             (strcmp(path, library) == 0 || why_not_loadable(path) == NULL);
      has_it = has_it || keep;
    }
    if (keep) {
      if (end > 0) out[end++] = ':';
      memcpy(out + end, at, length);
      end += length;
    }
    at += length;
    if (*at != '\0') ++at;
  }
  out[end] = '\0';
  if (library == NULL || has_it) return out;
  char* both = malloc(end + PATH_MAX + 2);
  if (both != NULL) sprintf(both, end > 0 ? "%s:%s" : "%s%s", library, out);
  free(out);
  return both;
}

static void set_preload(spank_t spank, const char* library) {
  char* old = get(spank, "LD_PRELOAD");
  char* value = old == NULL ? NULL : with_library(old, library);
  if (value != NULL && strcmp(old, value) != 0) {
    if (*value == '\0') {
      spank_unsetenv(spank, "LD_PRELOAD");
    } else {
      spank_setenv(spank, "LD_PRELOAD", value, 1);
    }
  }
  free(old);
  free(value);
}

// `rollcall run` gives its job a folder, which exists on its own node only.
static void check_folder(spank_t spank) {
  char* given = get(spank, "ROLLCALL_DIR");
  if (given != NULL && *given != '\0' && mkdir(given, 0700) != 0 && access(given, W_OK) != 0) {
    spank_unsetenv(spank, "ROLLCALL_DIR");
  }
  free(given);
  uid_t uid = 0;
  if (settings.dir[0] == '\0' || spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS) return;
  char path[PATH_MAX + 16];
  snprintf(path, sizeof(path), "%s/%u", settings.dir, (unsigned)uid);
  set_if_unset(spank, "ROLLCALL_DIR", path);
}

static void copy_variable(spank_t spank, const char* name, char out[kLongestName]) {
  char* value = get(spank, name);
  snprintf(out, kLongestName, "%s", value == NULL ? "" : value);
  free(value);
}

// Which component of a heterogeneous job this step is, "0"; empty if it is not one, or has several
// of them.
static void find_component(spank_t spank, char out[kLongestName]) {
  *out = '\0';
  char size[kLongestName], nodes[kLongestName], id[kLongestName], variable[kLongestName];
  uint32_t job = 0, step = 0, own_nodes = 0;
  copy_variable(spank, "SLURM_HET_SIZE", size);
  copy_variable(spank, "SLURM_STEP_NUM_NODES", nodes);
  const bool is_known = spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS &&
                        spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
                        spank_get_item(spank, S_JOB_NNODES, &own_nodes) == ESPANK_SUCCESS;
  // The batch script belongs to the whole job. A step of several components has more nodes than its
  // part in this component.
  if (*size == '\0' || *nodes == '\0' || !is_known || step > kHighestStep ||
      strtoul(nodes, NULL, 10) > own_nodes) {
    return;
  }
  const unsigned long components = strtoul(size, NULL, 10);
  for (unsigned long i = 0; i < components && i < kMostComponents; ++i) {
    snprintf(variable, sizeof(variable), "SLURM_JOB_ID_HET_GROUP_%lu", i);
    copy_variable(spank, variable, id);
    if (*id != '\0' && strtoul(id, NULL, 10) == job) snprintf(out, kLongestName, "%lu", i);
  }
}

// "4711-train"; of an array "4711_3-train"; of a step of one component of a heterogeneous job
// "4711+1-train".
static void name_job(spank_t spank) {
  char id[kLongestName], name[kLongestName], array[kLongestName], task[kLongestName],
      component[kLongestName], given[kLongestName], ours[kLongestName];
  copy_variable(spank, "SLURM_JOB_ID", id);
  copy_variable(spank, "SLURM_JOB_NAME", name);
  copy_variable(spank, "SLURM_ARRAY_JOB_ID", array);
  copy_variable(spank, "SLURM_ARRAY_TASK_ID", task);
  copy_variable(spank, "ROLLCALL_JOB", given);
  copy_variable(spank, "ROLLCALL_SLURM_JOB", ours);
  find_component(spank, component);
  // A name by a person or by `rollcall run` stays. One that the batch script has from here stays
  // too, but for a step of one component.
  const bool is_ours = *ours != '\0' && strcmp(given, ours) == 0;
  if (*id == '\0' ||
      (*given != '\0' && (!is_ours || *component == '\0' || is_set(spank, "ROLLCALL_LOADED")))) {
    return;
  }
  char job[5 * kLongestName];
  if (*array != '\0' && *task != '\0') {
    snprintf(job, sizeof(job), "%s_%s-%s", array, task, name);
  } else if (*component != '\0') {
    snprintf(job, sizeof(job), "%s+%s-%s", id, component, name);
  } else {
    snprintf(job, sizeof(job), "%s-%s", id, name);
  }
  spank_setenv(spank, "ROLLCALL_JOB", job, 1);
  spank_setenv(spank, "ROLLCALL_SLURM_JOB", job, 1);
}

// The level: of --rollcall, else of the variable ROLLCALL (`word`), else of plugstack.conf.
static enum level choose(const char* word, bool* is_asked) {
  *is_asked = true;
  if (option != kUnset) return option;
  const enum level level = word == NULL || *word == '\0' ? kUnset : parse_level(word);
  if (level != kUnset) return level;
  *is_asked = false;
  return settings.fallback;
}

int slurm_spank_task_init(spank_t spank, int count, char** arguments) {
  (void)count;
  (void)arguments;
  bool is_asked = false;
  char word[kLongestName];
  copy_variable(spank, "ROLLCALL", word);
  const enum level level = choose(word, &is_asked);
  if (level == kOff) {
    if (is_asked) {
      set_preload(spank, NULL);
      spank_setenv(spank, "ROLLCALL", "0", 1);
    }
    return ESPANK_SUCCESS;
  }
  const char* why_not = why_not_loadable(settings.library);
  if (why_not != NULL) {
    say(spank, "this job runs without Rollcall: cannot use %s: %s", settings.library, why_not);
    return ESPANK_SUCCESS;
  }
  set_preload(spank, settings.library);
  spank_setenv(spank, "ROLLCALL", level == kAbort ? "abort" : "observe", 1);
  if (level == kAbort) set_if_unset(spank, "ROLLCALL_ON_HANG", "abort");
  check_folder(spank);
  name_job(spank);
  return ESPANK_SUCCESS;
}

// --- In srun.

static void set_default(const char* name, const char* value) {
  if (*value != '\0') setenv(name, value, 0);
}

// Becomes the watcher of the step whose srun has this pid.
static void become_watcher(pid_t srun, uint32_t job, enum level level) {
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
  }
  const long most = sysconf(_SC_OPEN_MAX);
  for (int fd = STDERR_FILENO + 1; fd < (most > 0 && most < 65536 ? most : 65536); ++fd) close(fd);
  set_default("ROLLCALL_DAEMON", settings.daemon);
  set_default("ROLLCALL_TLS_CA", settings.tls_ca);
  set_default("ROLLCALL_TOKEN_FILE", settings.token_file);
  char pid[32], id[32];
  snprintf(pid, sizeof(pid), "%d", (int)srun);
  snprintf(id, sizeof(id), "%u", (unsigned)job);
  execl(settings.watch, settings.watch, pid, id, level == kAbort ? "abort" : "observe",
        (char*)NULL);
  fprintf(stderr, "rollcall: this step is not watched: %s: %s\n", settings.watch, strerror(errno));
}

// A grandchild, so that srun never waits for it. Slurm calls this for each component of a
// heterogeneous step; one watcher is enough.
int slurm_spank_local_user_init(spank_t spank, int count, char** arguments) {
  (void)count;
  (void)arguments;
  static bool is_watched = false;
  bool is_asked = false;
  const enum level level = choose(getenv("ROLLCALL"), &is_asked);
  // Under `rollcall run`, that one reports it.
  if (is_watched || settings.daemon[0] == '\0' || level == kUnset || level == kOff ||
      getenv("ROLLCALL_LOADED") != NULL) {
    return ESPANK_SUCCESS;
  }
  is_watched = true;
  uint32_t job = 0;
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
  const pid_t srun = getpid();
  const pid_t child = fork();
  if (child < 0) {
    slurm_error("rollcall: this step is not watched: fork: %s", strerror(errno));
  } else if (child == 0) {
    if (fork() == 0) become_watcher(srun, job, level);
    _exit(0);
  } else {
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  return ESPANK_SUCCESS;
}
