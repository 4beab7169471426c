// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clean_text.h"
#include "base/unique_fd.h"
#include "cli/doctor/elf_facts.h"
#include "cli/doctor/probes.h"
#include "cli/doctor/short_command.h"

extern char** environ;

namespace rollcall::doctor {
namespace {

constexpr std::chrono::seconds kLibraryPatience{4};
constexpr const char* kSmallPrograms[] = {"/bin/true", "/usr/bin/true"};

// A file with an old time, which the library updates when it is loaded.
class Mark {
 public:
  Mark() {
    const char* folder = getenv("TMPDIR");
    path_ = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/rollcall-doctor-XXXXXX");
    fd_ = UniqueFd(mkstemp(path_.data()));
    const timespec old[2] = {{1, 0}, {1, 0}};
    if (fd_.valid()) futimens(fd_.get(), old);
  }
  ~Mark() {
    if (fd_.valid()) unlink(path_.c_str());
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  bool is_usable() const { return fd_.valid(); }
  const std::string& path() const { return path_; }
  bool IsTouched() const {
    struct stat about;
    return fstat(fd_.get(), &about) == 0 && about.st_mtime > 1;
  }

 private:
  std::string path_;
  UniqueFd fd_;
};

// Returns a program that loads libraries, or "".
std::string FindSmallProgram(ElfFacts* elf) {
  for (const char* path : kSmallPrograms) {
    *elf = ReadElf(path);
    if (!elf->interpreter.empty()) return path;
  }
  return "";
}

// The environment without what would change the trial.
std::vector<std::string> TrialEnvironment(const Environment& environment,
                                          const std::string& library, const std::string& mark) {
  std::vector<std::string> out;
  for (const auto& [name, value] : environment) {
    if (absl::StartsWith(name, "LD_") || absl::StartsWith(name, "ROLLCALL")) continue;
    out.push_back(absl::StrCat(name, "=", value));
  }
  out.push_back(absl::StrCat("LD_PRELOAD=", library));
  out.push_back(absl::StrCat("ROLLCALL_LOADED=", mark));
  return out;
}

// Returns the line with the loader's reason; empty if it printed nothing.
std::string ReasonIn(const std::string& said) {
  std::string line = CleanText(said.substr(0, said.find('\n')));
  constexpr size_t kMost = 200;
  return line.size() > kMost ? line.substr(0, kMost) : line;
}

}  // namespace

Environment ReadEnvironment() {
  Environment environment;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(absl::string_view(*at), absl::MaxSplits('=', 1));
    environment.insert(parts);
  }
  return environment;
}

LibraryFacts ProbeLibrary(const std::string& path, const Environment& environment) {
  LibraryFacts facts;
  facts.path = path;
  if (path.empty()) return facts;
  facts.elf = ReadElf(path);
  ElfFacts tried;
  const std::string program = FindSmallProgram(&tried);
  const Mark mark;
  if (program.empty() || !mark.is_usable()) return facts;
  facts.is_musl = absl::StrContains(tried.interpreter, "ld-musl");
  const ShortResult result =
      RunShortly({program}, TrialEnvironment(environment, path, mark.path()), kLibraryPatience);
  facts.load = result.attempt;
  if (result.attempt == Attempt::kWorked && !mark.IsTouched()) facts.load = Attempt::kFailed;
  facts.said = ReasonIn(result.err);
  return facts;
}

std::set<std::string> FindMissingPreloads(const Environment& environment) {
  std::set<std::string> missing;
  const auto at = environment.find("LD_PRELOAD");
  if (at == environment.end()) return missing;
  for (const absl::string_view file :
       absl::StrSplit(at->second, absl::ByAnyChar(": "), absl::SkipEmpty())) {
    const std::string path(file);
    if (path.front() == '/' && access(path.c_str(), R_OK) != 0) missing.insert(path);
  }
  return missing;
}

}  // namespace rollcall::doctor
