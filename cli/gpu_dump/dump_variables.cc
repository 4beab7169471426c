// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu_dump/dump_variables.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/processes/rank_environment.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr char kPipePrefix[] = "pipe.", kFilePrefix[] = "core.";
// All that changes core dumps of GPUs. The last two are older names of two flags.
constexpr const char* kVariables[] = {"CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
                                      "CUDA_COREDUMP_PIPE",
                                      "CUDA_COREDUMP_FILE",
                                      "CUDA_COREDUMP_GENERATION_FLAGS",
                                      "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
                                      "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION",
                                      "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP"};
// That of CUDA 12.5. An older one does not know skip_abort, and would end the process.
constexpr int kOldestDriver = 555;

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar ...". 0 if unknown.
int ReadDriverVersion(absl::string_view text) {
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\n"))) {
    const size_t dot = word.find('.');
    int version = 0;
    if (dot == 3 && word.size() > 4 && absl::ascii_isdigit(static_cast<unsigned char>(word[4])) &&
        absl::SimpleAtoi(word.substr(0, dot), &version)) {
      return version;
    }
  }
  return 0;
}

}  // namespace

std::map<std::string, std::string> GpuDumpVariables(const std::string& folder) {
  if (folder.empty()) return {};
  return {{"CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "1"},
          {"CUDA_COREDUMP_PIPE", absl::StrCat(folder, "/", kPipePrefix, "%p")},
          {"CUDA_COREDUMP_FILE", absl::StrCat(folder, "/", kFilePrefix, "%p")},
          {"CUDA_COREDUMP_GENERATION_FLAGS", kDumpFlags}};
}

std::string GpuDumpPipe(const std::string& folder, int pid) {
  return absl::StrCat(folder, "/", kPipePrefix, pid);
}

std::string GpuDumpFile(const std::string& folder, int pid) {
  return absl::StrCat(folder, "/", kFilePrefix, pid);
}

bool HasGpuDumpVariables(const std::string& environ, const std::string& folder) {
  const auto variables = GpuDumpVariables(folder);
  return std::all_of(variables.begin(), variables.end(), [&](const auto& variable) {
    return FindInEnviron(environ, variable.first) == variable.second;
  });
}

std::string WhyNoGpuDumps(const std::function<const char*(const char*)>& getenv,
                          absl::string_view driver, bool has_mps_pipes) {
  for (const char* name : kVariables) {
    if (getenv(name) != nullptr) {
      return absl::StrCat("the environment already sets ", name, "\n  unset ", name);
    }
  }
  if (has_mps_pipes || getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr) {
    return "CUDA's Multi-Process Service is in use on this host, and a dump would end all its "
           "clients";
  }
  const int version = ReadDriverVersion(driver);
  if (version != 0 && version < kOldestDriver) {
    return absl::StrCat("NVIDIA's driver here is of release ", version, ", and one before ",
                        kOldestDriver, " ends a process that it dumps");
  }
  return "";
}

absl::StatusOr<std::string> MakeGpuDumpFolder() {
  char path[] = "/tmp/rollcall-gpu-XXXXXX";
  if (mkdtemp(path) != nullptr) return std::string(path);
  return absl::UnavailableError(
      absl::StrCat("cannot make a folder in /tmp: ", strerror(errno), "\n  df /tmp; ls -ld /tmp"));
}

std::string RemoveGpuDumpFolder(const std::string& folder) {
  std::string dump;
  if (folder.empty()) return dump;
  std::error_code error, ignored;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (fs::is_fifo(at->symlink_status(ignored))) {
      fs::remove(at->path(), ignored);
    } else if (dump.empty() || at->path().string() < dump) {
      dump = at->path().string();
    }
  }
  if (dump.empty()) fs::remove(folder, ignored);
  return dump;
}

}  // namespace rollcall
