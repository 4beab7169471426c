// SPDX-License-Identifier: Apache-2.0
#include "cli/run/recorder_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <random>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/processes/open_in_root.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"
#include "base/base_name.h"
#include "base/digest/digest.h"
#include "base/read_file.h"
#include "daemon/model/stand_kinds.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderOfPipes[] = "/tmp";
constexpr char kPipe[] = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
// The newest name first: PyTorch prefers it, too.
constexpr std::array<const char*, 2> kDumps = {"TORCH_FR_DUMP_TEMP_FILE",
                                               "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"};

constexpr size_t kPipeDigits = 16;

// Beside those of wait_frames.def, whose ranks a job's stacks do not show.
constexpr absl::string_view kStartElsewhere[] = {
    "orterun",   "prun",    "prterun", "jsrun",  "aprun",       "pdsh",           "bsub",
    "docker",    "podman",  "nerdctl", "ctr",    "crictl",      "runc",           "crun",
    "apptainer", "enroot",  "shifter", "sarus",  "singularity", "ch-run",         "udocker",
    "bwrap",     "nsenter", "unshare", "chroot", "horovodrun",  "systemd-nspawn",
};
// "mpiexec.hydra", "mpirun_rsh".
constexpr absl::string_view kBeginElsewhere[] = {"mpirun", "mpiexec"};

// Their names are words for other things as well, such as models: they start something with these
// commands.
struct NamedLikeOthers {
  absl::string_view name;
  std::vector<absl::string_view> commands;
};
const std::vector<NamedLikeOthers>& LaunchersNamedLikeOthers() {
  static const auto& launchers = *new std::vector<NamedLikeOthers>{
      {"flux", {"run", "submit", "bulksubmit", "mini", "exec", "alloc", "batch", "start", "proxy"}},
      {"oc", {"exec", "rsh", "run", "debug"}},
  };
  return launchers;
}

// What comes behind these words is for a program of Python.
constexpr absl::string_view kInterpreters[] = {"python", "pypy", "torchrun"};

bool BeginsArguments(absl::string_view word) {
  const absl::string_view name = BaseName(word);
  return absl::EndsWith(name, ".py") ||
         std::any_of(std::begin(kInterpreters), std::end(kInterpreters),
                     [name](absl::string_view one) {
                       return absl::StartsWith(name, one) &&
                              name.find_first_not_of("0123456789.", one.size()) == name.npos;
                     });
}

// `first`, `last`: the words behind it.
using Words = std::vector<std::string>;
bool StartsElsewhere(absl::string_view word, Words::const_iterator first,
                     Words::const_iterator last) {
  const absl::string_view name = BaseName(word);
  for (const NamedLikeOthers& launcher : LaunchersNamedLikeOthers()) {
    if (name != launcher.name) continue;
    return std::find_first_of(first, last, launcher.commands.begin(), launcher.commands.end()) !=
           last;
  }
  for (const absl::string_view beginning : kBeginElsewhere) {
    if (absl::StartsWith(name, beginning)) return true;
  }
  return WaitsForOtherHosts(name) ||
         std::find(std::begin(kStartElsewhere), std::end(kStartElsewhere), name) !=
             std::end(kStartElsewhere);
}

constexpr char kBlanks[] = " \t";
constexpr char kEndsCommand[] = "\n;&|()'\"`";  // in a text for a shell

bool TextStartsElsewhere(absl::string_view text) {
  const std::vector<absl::string_view> commands =
      absl::StrSplit(text, absl::ByAnyChar(kEndsCommand), absl::SkipEmpty());
  return std::any_of(commands.begin(), commands.end(), [](absl::string_view command) {
    return MayStartElsewhere(absl::StrSplit(command, absl::ByAnyChar(kBlanks), absl::SkipEmpty()));
  });
}

bool IsNamedByUser(const std::function<const char*(const char*)>& getenv, const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0';
}

bool LookAtFile(const std::string& root, const std::string& path, struct stat* about) {
  const UniqueFd path_only = OpenInRoot(root, path, O_PATH | O_NOFOLLOW);
  return path_only.valid() && fstat(path_only.get(), about) == 0;
}

}  // namespace

std::map<std::string, std::string> RecorderVariables(
    const std::function<const char*(const char*)>& getenv, const std::string& prefix) {
  std::map<std::string, std::string> variables;
  if (prefix.empty()) return variables;
  if (!IsNamedByUser(getenv, kPipe)) variables[kPipe] = RecorderPipes(prefix);
  for (const char* name : kDumps) {
    if (IsNamedByUser(getenv, name)) return variables;
  }
  for (const char* name : kDumps) variables[name] = prefix;
  return variables;
}

std::string MakeRecorderPrefix() {
  if (access(kFolderOfPipes, W_OK | X_OK) != 0) return "";
  std::random_device random;
  return absl::StrFormat("%s/rollcall-%08x%08x-rank_", kFolderOfPipes, random(), random());
}

std::string RecorderPipes(const std::string& prefix) {
  return absl::StrCat(kFolderOfPipes, "/rollcall-", Sha256Hex(prefix).substr(0, kPipeDigits),
                      "-pipe_");
}

bool MayStartElsewhere(const std::vector<std::string>& command) {
  for (auto word = command.begin(); word != command.end(); ++word) {
    if (absl::StartsWith(*word, "-")) continue;
    if (word->find_first_of(kBlanks) != std::string::npos ||
        word->find_first_of(kEndsCommand) != std::string::npos) {
      if (TextStartsElsewhere(*word)) return true;
      continue;
    }
    if (BeginsArguments(*word)) return false;
    if (StartsElsewhere(*word, std::next(word), command.end())) return true;
  }
  return false;
}

RecorderFiles FindRecorderFiles(const std::string& environ, int rank) {
  RecorderFiles files;
  const absl::string_view pipe = FindInEnviron(environ, kPipe);
  absl::string_view dump;
  for (const char* name : kDumps) {
    if (dump.empty()) dump = FindInEnviron(environ, name);
  }
  if (rank < 0 || !absl::StartsWith(pipe, "/") || !absl::StartsWith(dump, "/")) return files;
  files.pipe = absl::StrCat(pipe, rank, ".pipe");
  files.dump = absl::StrCat(dump, rank);
  return files;
}

bool HasPipeOpen(const std::string& proc_root, int32_t pid, const std::string& pipe) {
  struct stat named;
  if (!LookAtFile(ProcPath(proc_root, pid, "root"), pipe, &named)) return false;
  const std::string name = absl::StrCat("/", std::string(BaseName(pipe)));
  const absl::StatusOr<std::vector<pid_t>> numbers = ListNumbers(ProcPath(proc_root, pid, "fd"));
  if (!numbers.ok()) return false;
  return std::any_of(numbers->begin(), numbers->end(), [&](pid_t number) {
    const std::string file = ProcPath(proc_root, pid, absl::StrCat("fd/", number));
    // Its other files may be on a file system that does not answer.
    if (!absl::EndsWith(ReadLink(file), name)) return false;
    struct stat about;
    return stat(file.c_str(), &about) == 0 && about.st_dev == named.st_dev &&
           about.st_ino == named.st_ino;
  });
}

std::string RemoveRecorderFiles(const std::string& prefix, bool with_dumps) {
  std::string dump;
  if (prefix.empty()) return dump;
  const std::string pipes = RecorderPipes(prefix);
  std::error_code error;
  for (auto at = fs::directory_iterator(kFolderOfPipes, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string path = at->path().string();
    std::error_code ignored;
    const bool is_dump = absl::StartsWith(path, prefix);
    if (absl::StartsWith(path, pipes) && fs::is_fifo(at->symlink_status(ignored))) {
      fs::remove(path, ignored);
    } else if (is_dump && with_dumps) {
      fs::remove_all(path, ignored);  // torchft makes folders of this name
    } else if (is_dump && (dump.empty() || path < dump)) {
      dump = path;
    }
  }
  return dump;
}

}  // namespace rollcall
