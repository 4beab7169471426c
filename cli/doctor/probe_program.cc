// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/unique_fd.h"
#include "cli/doctor/elf_facts.h"
#include "cli/doctor/probes.h"
#include "cli/doctor/short_command.h"

namespace rollcall::doctor {
namespace {

constexpr int kMostScripts = 5;  // as the kernel follows
constexpr std::chrono::seconds kPythonPatience{8};
constexpr char kPrintFolders[] = "import sys; print('\\n'.join(sys.path))";
constexpr char kNccl[] = "libnccl.so.2";

std::string ValueOf(const Environment& environment, const std::string& name) {
  const auto at = environment.find(name);
  return at == environment.end() ? "" : at->second;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns the path of a command as a shell finds it, or "" with the reason in `*error`.
std::string FindCommand(const std::string& name, const std::string& path, std::string* error) {
  *error = "no such command on the PATH";
  std::vector<std::string> candidates = {name};
  if (!absl::StrContains(name, '/')) {
    candidates.clear();
    for (const absl::string_view folder : absl::StrSplit(path, ':')) {
      candidates.push_back(absl::StrCat(folder.empty() ? "." : folder, "/", name));
    }
  }
  for (const std::string& candidate : candidates) {
    struct stat about;
    if (stat(candidate.c_str(), &about) != 0) {
      if (candidates.size() == 1) *error = strerror(errno);
      continue;
    }
    if (!S_ISREG(about.st_mode)) {
      *error = "it is not a file";
    } else if (access(candidate.c_str(), X_OK) != 0) {
      *error = strerror(errno);
    } else {
      error->clear();
      return candidate;
    }
  }
  return "";
}

// The words of a script's first line after #!; empty if it is not a script.
std::vector<std::string> ReadFirstLine(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char bytes[512];
  const ssize_t count = fd.valid() ? read(fd.get(), bytes, sizeof(bytes)) : 0;
  if (count < 3 || bytes[0] != '#' || bytes[1] != '!') return {};
  const absl::string_view text(bytes + 2, static_cast<size_t>(count) - 2);
  return absl::StrSplit(text.substr(0, text.find('\n')), absl::ByAnyChar(" \t\r"),
                        absl::SkipEmpty());
}

// What a first line starts: of "env", the first word that is neither flag nor assignment.
std::string InterpreterOf(const std::vector<std::string>& words) {
  if (BaseName(words.front()) != "env") return words.front();
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].front() != '-' && !absl::StrContains(words[i], '=')) return words[i];
  }
  return words.front();
}

std::string MachineOfHost() {
  utsname name;
  if (uname(&name) != 0) return "";
  const std::string machine = name.machine;
  return machine == "x86_64" ? "x86-64" : machine;
}

void ReadPrivileges(ProgramFacts* facts) {
  struct stat about;
  if (stat(facts->path.c_str(), &about) != 0) return;
  facts->changes_user = ((about.st_mode & S_ISUID) != 0 && about.st_uid != getuid()) ||
                        ((about.st_mode & S_ISGID) != 0 && about.st_gid != getgid());
  // The loader trusts root's own environment with such a file.
  facts->gains_capabilities =
      getuid() != 0 && getxattr(facts->path.c_str(), "security.capability", nullptr, 0) > 0;
}

void AskPython(const Environment& environment, ProgramFacts* facts) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) {
    if (name != "LD_PRELOAD") variables.push_back(absl::StrCat(name, "=", value));
  }
  const ShortResult result =
      RunShortly({facts->path, "-c", kPrintFolders}, variables, kPythonPatience);
  facts->python = result.attempt;
  if (result.attempt != Attempt::kWorked) return;
  facts->python_folders = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
}

bool IsShell(const std::string& path) {
  const std::string name = BaseName(path);
  return name == "sh" || name == "bash" || name == "dash" || name == "zsh" || name == "ksh";
}

// "2.28.9" in "libnccl.so.2.28.9" or "nvidia_nccl_cu12-2.28.9.dist-info" as 22809, or 0.
int VersionIn(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  int major = 0, minor = 0, patch = 0;
  if (parts.size() < 3 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor) || !absl::SimpleAtoi(parts[2], &patch)) {
    return 0;
  }
  const bool is_possible =
      major > 0 && major < 100 && minor >= 0 && minor < 100 && patch >= 0 && patch < 100;
  return is_possible ? major * 10000 + minor * 100 + patch : 0;
}

int VersionOfPackage(const std::string& site) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(site, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "nvidia_nccl") || !absl::EndsWith(name, ".dist-info")) continue;
    absl::string_view version = absl::string_view(name).substr(name.find('-') + 1);
    absl::ConsumeSuffix(&version, ".dist-info");
    return VersionIn(version);
  }
  return 0;
}

class NcclSearch {
 public:
  void Add(const std::string& folder, const char* origin, int version = 0) {
    std::error_code failed;
    const std::filesystem::path real =
        std::filesystem::canonical(absl::StrCat(folder, "/", kNccl), failed);
    if (failed) return;
    const bool is_known =
        std::any_of(facts_.files.begin(), facts_.files.end(),
                    [&](const NcclFile& file) { return file.path == real.string(); });
    if (is_known) return;
    std::string name = real.filename().string();
    absl::string_view end = name;
    if (version == 0 && absl::ConsumePrefix(&end, "libnccl.so.")) version = VersionIn(end);
    facts_.files.push_back({real.string(), origin, version});
  }

  void AddUsers(const std::vector<std::pair<std::string, ElfFacts>>& users,
                std::vector<std::string> ElfFacts::* folders) {
    for (const auto& [path, elf] : users) {
      for (const std::string& folder : elf.*folders) Add(folder, kOwnPath);
    }
  }

  NcclFacts& facts() { return facts_; }

 private:
  NcclFacts facts_;
};

}  // namespace

ProgramFacts ProbeProgram(const std::vector<std::string>& command, const Environment& environment) {
  ProgramFacts facts;
  facts.command = command;
  if (command.empty()) return facts;
  facts.machine = MachineOfHost();
  std::string name = command.front();
  for (int i = 0; i <= kMostScripts; ++i) {
    facts.path = FindCommand(name, ValueOf(environment, "PATH"), &facts.error);
    if (!facts.error.empty()) {
      if (!facts.scripts.empty()) {
        facts.error = absl::StrCat(facts.scripts.back(), " asks for ", name, ": ", facts.error);
      }
      return facts;
    }
    const std::vector<std::string> words = ReadFirstLine(facts.path);
    if (words.empty()) break;
    facts.scripts.push_back(facts.path);
    name = InterpreterOf(words);
  }
  facts.elf = ReadElf(facts.path);
  ReadPrivileges(&facts);
  const bool has_script = !facts.scripts.empty() || command.size() > 1;
  facts.is_shell = IsShell(facts.path) && has_script;
  facts.is_python = absl::StartsWith(BaseName(facts.path), "python");
  if (facts.is_python && facts.elf.is_elf) AskPython(environment, &facts);
  return facts;
}

std::vector<std::string> SystemFolders(const HostFiles& files) {
  std::vector<std::string> folders;
  for (const std::string& name : files.List("/etc/ld.so.conf.d")) {
    const std::string text = files.Read(absl::StrCat("/etc/ld.so.conf.d/", name)).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
      if (absl::StartsWith(line, "/")) folders.push_back(files.Path(std::string(line)));
    }
  }
  for (const char* folder :
       {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib",
        "/usr/local/cuda/lib64"}) {
    folders.push_back(files.Path(folder));
  }
  return folders;
}

NcclFacts FindNccl(const ProgramFacts& program, const Environment& environment,
                   const HostFiles& files) {
  std::vector<std::pair<std::string, ElfFacts>> users;
  if (program.elf.is_elf) users.emplace_back(program.path, program.elf);
  for (const std::string& folder : program.python_folders) {
    const std::string torch = absl::StrCat(folder, "/torch/lib/libtorch_cuda.so");
    if (access(torch.c_str(), R_OK) == 0) users.emplace_back(torch, ReadElf(torch));
  }
  NcclSearch search;
  for (const auto& [path, elf] : users) {
    if (elf.has_nccl && search.facts().inside.empty()) search.facts().inside = path;
  }
  search.AddUsers(users, &ElfFacts::rpath);
  for (const absl::string_view folder :
       absl::StrSplit(ValueOf(environment, "LD_LIBRARY_PATH"), ':', absl::SkipEmpty())) {
    search.Add(std::string(folder), kSearchPath);
  }
  search.AddUsers(users, &ElfFacts::runpath);
  for (const std::string& folder : program.python_folders) {
    search.Add(folder + "/nvidia/nccl/lib", kPythonPackage, VersionOfPackage(folder));
  }
  for (const std::string& folder : SystemFolders(files)) search.Add(folder, kSystem);
  return search.facts();
}

}  // namespace rollcall::doctor
