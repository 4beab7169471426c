// SPDX-License-Identifier: Apache-2.0
// Whether librollcall.so is there, loads, and is switched on.
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/doctor/checks.h"
#include "interpose/segment.h"

namespace rollcall::doctor {
namespace {

constexpr char kLibraryName[] = "librollcall.so";

struct Switch {
  const char* variable;
  const char* off;  // the value that switches it off
  const char* lost;
};

constexpr Switch kSwitches[] = {
    {"ROLLCALL", "0", "the library does nothing"},
    {"ROLLCALL_STACKS", "off", "Rollcall takes no stacks"},
    {"ROLLCALL_MARKERS", "0", "the GPU does not record its progress"},
    {"ROLLCALL_STACK_SIGNAL", "0", "no stacks where tracing is refused"},
    {"ROLLCALL_PYTHON_ERRORS", "0", "verdicts have no exceptions"},
};

// The files of LD_PRELOAD that are called as the library.
std::vector<std::string> PreloadedLibraries(const Facts& facts) {
  std::vector<std::string> found;
  for (const absl::string_view file :
       absl::StrSplit(facts.Variable("LD_PRELOAD"), absl::ByAnyChar(": "), absl::SkipEmpty())) {
    if (absl::EndsWith(file, kLibraryName)) found.emplace_back(file);
  }
  return found;
}

bool IsOff(const Facts& facts, const Switch& one) {
  const std::string value = absl::AsciiStrToLower(facts.Variable(one.variable));
  if (value == one.off) return true;
  const bool has_words = std::string_view(one.off) == "off";  // stacks_switch.h accepts more words
  return has_words && (value == "0" || value == "no" || value == "false");
}

}  // namespace

Judgement JudgeLibrary(const Facts& facts) {
  const LibraryFacts& library = facts.library;
  if (library.path.empty()) {
    return {State::kProblem, "librollcall.so is not in ../lib of this program's folder",
            "pip install --force-reinstall WHEEL   or   cmake --build --preset release"};
  }
  if (!library.elf.is_elf) {
    return {State::kProblem, absl::StrCat(library.path, " is damaged: it is not an ELF file"),
            "install Rollcall again:  pip install --force-reinstall WHEEL"};
  }
  switch (library.load) {
    case Attempt::kWorked:
      if (library.is_musl && facts.program.command.empty()) {
        return {
            State::kProblem,
            "programs of this system use musl's libc: the library loads and records nothing",
            "use an image with glibc 2.17 or newer, such as debian or ubuntu instead of alpine"};
      }
      return {State::kOk, absl::StrCat(library.path, " loads into programs of this system"), ""};
    case Attempt::kNoAnswer:
      return {State::kProblem,
              absl::StrCat("a program under ", library.path, " did not end within some seconds"),
              absl::StrCat("does the file system answer?  ls -l ", library.path)};
    case Attempt::kFailed:
      return {
          State::kProblem,
          absl::StrCat("the loader of this system does not load ", library.path,
                       library.said.empty() ? "" : ": ", library.said),
          absl::StrCat("LD_DEBUG=files LD_PRELOAD=", library.path,
                       " /bin/true   shows the reason; a system of musl (Alpine) needs an image "
                       "with glibc 2.17 or newer")};
    case Attempt::kNotMade:
      break;
  }
  return {State::kNotApplicable, absl::StrCat(library.path, " is there; no program to try it with"),
          ""};
}

Judgement JudgePreload(const Facts& facts) {
  const std::vector<std::string> files = PreloadedLibraries(facts);
  if (files.empty()) {
    return {State::kNotApplicable,
            "LD_PRELOAD does not name the library in this shell; `rollcall run` sets it", ""};
  }
  for (const std::string& file : files) {
    // The loader looks for a name without a slash in its folders, and replaces $LIB.
    const bool is_plain = absl::StartsWith(file, "/") && !absl::StrContains(file, '$');
    if (is_plain && facts.missing_preloads.count(file) != 0) {
      return {
          State::kProblem,
          absl::StrCat("LD_PRELOAD names ", file,
                       ", which is not here: every program prints an error and records nothing"),
          absl::StrCat("export LD_PRELOAD=",
                       facts.library.path.empty() ? "$(python -m rollcall)" : facts.library.path)};
    }
  }
  if (files.size() > 1) {
    return {State::kWarning,
            absl::StrCat("LD_PRELOAD names the library ", files.size(), " times (",
                         absl::StrJoin(files, ", "), "): only the first one records"),
            absl::StrCat("export LD_PRELOAD=", files.front())};
  }
  return {State::kOk, absl::StrCat("LD_PRELOAD names ", files.front()), ""};
}

Judgement JudgeSwitches(const Facts& facts) {
  std::vector<std::string> lost, variables;
  for (const Switch& one : kSwitches) {
    if (!IsOff(facts, one)) continue;
    lost.push_back(absl::StrCat(one.variable, "=", facts.Variable(one.variable), ": ", one.lost));
    variables.emplace_back(one.variable);
  }
  if (lost.empty()) return {State::kOk, "no variable switches a part of the library off", ""};
  const State state = variables.front() == "ROLLCALL" ? State::kProblem : State::kWarning;
  return {state, absl::StrJoin(lost, "; "), absl::StrCat("unset ", absl::StrJoin(variables, " "))};
}

Judgement JudgeLimits(const Facts& facts) {
  constexpr int64_t kPart = 16;  // segment_file.cc, HasAddressSpace()
  const int64_t mapped = static_cast<int64_t>(segment::kMappedBytes);
  const int64_t space = facts.kernel.address_space_bytes;
  if (space >= 0 && mapped > space / kPart) {
    return {State::kProblem,
            absl::StrCat("the limit of address space is ", space >> 20, " MiB: the library needs ",
                         (mapped * kPart) >> 20, " MiB to record"),
            "ulimit -v unlimited"};
  }
  const int64_t file = facts.kernel.file_bytes;
  const int64_t most = static_cast<int64_t>(segment::kHeaderBytes + segment::kCommBlockBytes);
  if (file >= 0 && file < most) {
    return {State::kProblem,
            absl::StrCat("the limit of file sizes is ", file >> 10,
                         " KiB: the library cannot make its segment"),
            "ulimit -f unlimited"};
  }
  return {State::kOk, "no limit of address space or file sizes stops the library", ""};
}

}  // namespace rollcall::doctor
