// SPDX-License-Identifier: Apache-2.0
// What `rollcall doctor` has found out about this host, container or program. Plain values: the
// probes (probes.h) fill them in, the checks (checks.h) judge them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "interpose/room.h"

namespace rollcall::doctor {

// How an attempt to do something went.
enum class Attempt { kNotMade, kWorked, kFailed, kNoAnswer };

// A file in ELF: what its headers and its tables of symbols contain.
struct ElfFacts {
  bool is_elf = false;
  std::string machine;               // "x86-64", "aarch64"; empty means another one
  std::string interpreter;           // the loader that it asks for, or empty
  std::vector<std::string> needed;   // names of libraries
  std::vector<std::string> rpath;    // folders before LD_LIBRARY_PATH; $ORIGIN is replaced
  std::vector<std::string> runpath;  // folders after it
  bool has_nccl = false;             // it defines ncclAllReduce
  bool has_marker_calls = false;     // it defines what GPU markers need of the driver
  // "address", "thread", ...: the sanitizer whose runtime it loads, or empty. One that is linked
  // into the program itself does not mind what is preloaded.
  std::string sanitizer;
};

struct LibraryFacts {
  std::string path;  // of librollcall.so; empty if not found
  ElfFacts elf;
  Attempt load = Attempt::kNotMade;  // in a program of this system
  std::string said;                  // by the loader
  bool is_musl = false;              // this system's programs
};

struct ProgramFacts {
  std::vector<std::string> command;  // empty if the user named none
  std::string path;   // of the program that runs: an interpreter, if `scripts` has files
  std::string error;  // why it cannot run; empty if it can
  std::vector<std::string> scripts;  // on the way to it, by their first lines (#!)
  ElfFacts elf;
  std::string machine;              // of this host
  bool changes_user = false;        // setuid or setgid to another user
  bool gains_capabilities = false;  // the file has capabilities
  bool is_python = false;
  bool is_shell = false;               // the program is a script of a shell, which starts others
  Attempt python = Attempt::kNotMade;  // asking it for `python_folders`
  std::vector<std::string> python_folders;  // sys.path
};

// Where a libnccl.so.2 comes from.
inline constexpr char kSearchPath[] = "LD_LIBRARY_PATH";
inline constexpr char kPythonPackage[] = "the Python package nvidia-nccl";
inline constexpr char kOwnPath[] = "the path inside the program or its library";
inline constexpr char kSystem[] = "the system";

struct NcclFile {
  std::string path;
  std::string origin;  // one of the words above
  int version = 0;     // 22809 for 2.28.9; 0 if unknown
};

struct NcclFacts {
  std::vector<NcclFile> files;  // in the order in which the loader looks for them
  std::string inside;           // a program or library with an NCCL of its own, or empty
};

// The gloo in the program's PyTorch, by the functions that the library wraps, as "Class::function".
struct GlooFacts {
  std::string path;     // of libtorch_cpu.so; empty if not found
  std::string version;  // of PyTorch; empty if unknown
  int known = 0;        // functions that the library wraps, in all versions of PyTorch
  int found = 0;
  std::vector<std::string> absent;   // collectives that this version does not have
  std::vector<std::string> changed;  // it has them with other arguments
  std::vector<std::string> lost;     // others that it does not have, which serve all calls
};

enum class FolderState { kUsable, kNoAnswer, kNotMade, kNoFolder, kOtherUser, kNotWritable };

struct FolderFacts {
  std::string path;
  bool is_chosen = false;  // by ROLLCALL_DIR
  bool is_taken = false;   // another user has the usual folder, so this is one with a random name
  FolderState state = FolderState::kUsable;
  std::string error;  // of the system
  uid_t owner = 0;
  std::string server;  // the type of a file system of a server ("nfs"); empty if it is local
  Room room;
};

struct SharedMemoryFacts {
  bool exists = false;
  uint64_t total_bytes = 0;  // 0 means no limit
  uint64_t free_bytes = 0;
};

struct TracingFacts {
  Attempt of_child = Attempt::kNotMade;  // as `rollcall run` traces its job
  Attempt of_other = Attempt::kNotMade;  // as an agent traces a process that it did not start
  std::string reason;                    // of a refusal, and what to type, in further lines
  int ptrace_scope = -1;                 // of Yama; -1 if the kernel has none
  int seccomp = 0;                       // mode; 2: a filter
  std::string profile;                   // of AppArmor; empty if there is none, or unconfined
  bool selinux_denies = false;           // deny_ptrace, enforced
};

struct KernelFacts {
  int64_t address_space_bytes = -1;  // limit, or -1
  int64_t file_bytes = -1;           // limit, or -1
  Attempt kernel_log = Attempt::kNotMade;
};

struct ContainerFacts {
  std::string kind;              // "docker", "podman", "kubernetes", "lxc"; empty if not seen
  bool has_proc = true;          // /proc is mounted
  bool is_foreign_proc = false;  // /proc shows the processes of another pid namespace
  bool has_own_pids = false;     // a pid namespace other than the host's
};

struct SystemdFacts {
  bool is_running = false;
  bool removes_ipc = false;
  std::string source;    // the file that sets it; empty means the default
  bool lingers = false;  // this user's processes outlive the last session
};

struct SlurmFacts {
  std::string config;         // path of slurm.conf; empty if not found
  std::string job_container;  // JobContainerType, or the namespace plugin
  std::string task_prolog;
  bool has_pyxis = false;
  std::string plugin;  // path of spank_rollcall.so in plugstack.conf; empty if not there
  bool has_plugin_file = false;
};

struct AgentFacts {
  Attempt looked = Attempt::kNotMade;
  bool is_running = false;  // an agent that serves this user and reports to `daemon`
  std::string directory;
  bool may_see_all = false;  // this user, started as an agent, may read every user's processes
};

enum class DaemonAnswer { kNone, kAnswered, kRefused, kUnreachable, kWrongFlags, kNoAnswer };

struct DaemonFacts {
  bool is_chosen = false;  // by a flag or by the environment
  std::string address;
  bool has_tls = false;
  DaemonAnswer answer = DaemonAnswer::kNone;
  std::string error;
  std::string version;
  int64_t ahead_ns = 0;         // the daemon's clock over this host's
  int64_t round_trip_ns = 0;    // the uncertainty of `ahead_ns` is half of it
  int64_t own_expiry_s = 0;     // Unix time of the end of --tls-cert; 0 if there is no certificate
  int64_t daemon_expiry_s = 0;  // of the daemon's certificate; 0 if not seen
};

struct GpuFacts {
  std::string driver;        // version of NVIDIA's kernel module; empty if not loaded
  bool is_amd = false;       // /dev/kfd is there
  int devices = 0;           // /dev/nvidia0, ...
  std::string device_error;  // why /dev/nvidiactl cannot be opened
  std::string library;       // path of libcuda.so.1; empty if not found
  ElfFacts elf;              // of it
};

struct Facts {
  std::map<std::string, std::string> environment;
  std::set<std::string> missing_preloads;  // absolute paths in LD_PRELOAD that lead to no file
  uid_t user = 0;
  int64_t now_s = 0;    // Unix time
  std::string version;  // of this program
  LibraryFacts library;
  ProgramFacts program;
  NcclFacts nccl;
  GlooFacts gloo;
  FolderFacts folder;
  SharedMemoryFacts shared_memory;
  TracingFacts tracing;
  KernelFacts kernel;
  ContainerFacts container;
  SystemdFacts systemd;
  SlurmFacts slurm;
  AgentFacts agent;
  DaemonFacts daemon;
  GpuFacts gpu;

  // Returns the value of a variable; empty if unset.
  std::string Variable(const std::string& name) const {
    const auto at = environment.find(name);
    return at == environment.end() ? "" : at->second;
  }
  bool IsSet(const std::string& name) const { return environment.count(name) != 0; }
};

}  // namespace rollcall::doctor
