// SPDX-License-Identifier: Apache-2.0
// Whether the library can see the calls of the program that the user named, and of which NCCL.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/doctor/checks.h"

namespace rollcall::doctor {
namespace {

constexpr int kFirstPluginVersion =
    22700;  // NCCL 2.27: its profiler reports calls with all we need

std::string VersionText(int version) {
  return absl::StrFormat("%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

std::string Describe(const NcclFile& file) {
  return absl::StrCat(
      file.version == 0 ? "" : absl::StrCat("NCCL ", VersionText(file.version), ", "), file.path,
      " (", file.origin, ")");
}

bool IsExamined(const Facts& facts) {
  return !facts.program.command.empty() && facts.program.error.empty();
}

Judgement NoProgram() { return {State::kNotApplicable, "no program named", ""}; }

bool IsMusl(const ElfFacts& elf) { return absl::StrContains(elf.interpreter, "ld-musl"); }

std::string SanitizerOptions(const std::string& sanitizer) {
  return sanitizer == "address" ? "ASAN_OPTIONS=verify_asan_link_order=0 " : "";
}

// Returns the program and its way: "/usr/bin/python3.11 (by /opt/venv/bin/torchrun)".
std::string NameOfProgram(const ProgramFacts& program) {
  if (program.scripts.empty()) return program.path;
  return absl::StrCat(program.path, " (by ", program.scripts.front(), ")");
}

Judgement DynamicProgram(const Facts& facts) {
  return {State::kOk,
          absl::StrCat(NameOfProgram(facts.program), " is dynamic: the library loads into it"), ""};
}

}  // namespace

Judgement JudgeProgram(const Facts& facts) {
  const ProgramFacts& program = facts.program;
  if (program.command.empty()) {
    return {State::kNotApplicable, "no program named", "rollcall doctor python train.py"};
  }
  const std::string& name = program.command.front();
  if (!program.error.empty()) {
    return {State::kProblem, absl::StrCat("cannot run ", name, ": ", program.error),
            absl::StrCat("command -v ", name)};
  }
  if (!program.elf.is_elf) {
    return {State::kProblem,
            absl::StrCat(program.path, " is neither a program in ELF nor a script"),
            absl::StrCat("file ", program.path)};
  }
  if (program.elf.machine != program.machine) {
    return {State::kProblem,
            absl::StrCat(program.path, " is a program for another processor than this host's ",
                         program.machine, ": no library of this host loads into it"),
            absl::StrCat("file ", program.path)};
  }
  if (program.elf.interpreter.empty()) {
    return {
        State::kProblem,
        absl::StrCat(NameOfProgram(program), " is static: no library can be preloaded",
                     program.elf.has_nccl ? ", and NCCL is inside" : ""),
        program.elf.has_nccl
            ? "link it dynamically against libc:  a static program cannot load NCCL's plugin either"
            : "name the program that calls NCCL:  rollcall doctor PROGRAM; a static launcher "
              "passes LD_PRELOAD on"};
  }
  if (IsMusl(program.elf)) {
    return {State::kProblem,
            absl::StrCat(NameOfProgram(program),
                         " uses musl's libc: the library records nothing there"),
            "use an image with glibc 2.17 or newer, such as debian or ubuntu instead of alpine"};
  }
  if (program.is_shell) {
    return {State::kNotApplicable,
            absl::StrCat(program.scripts.empty() ? name : program.scripts.front(),
                         " is a script of a shell: what it starts was not examined"),
            "name the program that it starts:  rollcall doctor PYTHON train.py"};
  }
  if (program.changes_user || program.gains_capabilities) {
    const bool is_setuid = program.changes_user;
    return {
        State::kProblem,
        absl::StrCat(program.path,
                     is_setuid ? " runs as another user (setuid)" : " has capabilities of its file",
                     ": the loader ignores LD_PRELOAD there"),
        is_setuid
            ? absl::StrCat("cp ", program.path, " COPY && chmod u-s,g-s COPY   and start the copy")
            : absl::StrCat("sudo setcap -r ", program.path)};
  }
  return DynamicProgram(facts);
}

Judgement JudgeSanitizer(const Facts& facts) {
  if (!IsExamined(facts)) return NoProgram();
  const std::string& sanitizer = facts.program.elf.sanitizer;
  if (sanitizer.empty()) return {State::kOk, "the program has no sanitizer inside", ""};
  if (sanitizer != "address") {
    return {State::kOk,
            absl::StrCat("the program has the sanitizer of kind ", sanitizer,
                         ", which accepts a preloaded library"),
            ""};
  }
  const std::string options = facts.Variable("ASAN_OPTIONS");
  const bool is_permitted = absl::StrContains(options, "verify_asan_link_order=0") ||
                            absl::StrContains(options, "verify_asan_link_order=false");
  const std::string preload = facts.Variable("LD_PRELOAD");
  const bool is_first = absl::StrContains(preload.substr(0, preload.find_first_of(": ")), "asan");
  if (is_permitted || is_first) {
    return {State::kOk, "the program has AddressSanitizer inside, and it accepts the library", ""};
  }
  return {
      State::kProblem,
      "the program has AddressSanitizer inside, and ends with \"ASan runtime does not come first\" "
      "under a preloaded library",
      absl::StrCat(SanitizerOptions(sanitizer), "rollcall run ", facts.program.command.front(),
                   " ...")};
}

Judgement JudgeNccl(const Facts& facts) {
  const std::vector<NcclFile>& files = facts.nccl.files;
  const std::string& inside = facts.nccl.inside;
  if (!inside.empty()) {
    return {State::kWarning,
            absl::StrCat(
                "NCCL is static in ", inside,
                ": the library may be unable to wrap its calls, and then depends on NCCL's plugin "
                "(from NCCL 2.27 on). Creation of communicators and GPU markers are missing then"),
            absl::StrCat("link libnccl.so.2, or check the release inside:  strings ", inside,
                         " | grep 'NCCL version'")};
  }
  if (IsExamined(facts) && facts.program.python == Attempt::kNoAnswer) {
    return {State::kWarning, "Python did not print its folders within some seconds",
            absl::StrCat(facts.program.path, " -c 'import sys; print(sys.path)'")};
  }
  const char* const missing =
      "no libnccl.so.2 in the program's folders, LD_LIBRARY_PATH, Python's packages or the system";
  if (files.empty() && facts.gpu.driver.empty()) return {State::kNotApplicable, missing, ""};
  if (files.empty()) {
    return {State::kWarning, missing,
            "pip install nvidia-nccl-cu12   or name the interpreter of the job:  rollcall doctor "
            "PYTHON train.py"};
  }
  const NcclFile& first = files.front();
  const auto other = std::find_if(files.begin(), files.end(), [&](const NcclFile& file) {
    return file.version != 0 && first.version != 0 && file.version != first.version &&
           file.origin == kPythonPackage;
  });
  if (first.origin == kSearchPath && other != files.end()) {
    return {
        State::kWarning,
        absl::StrCat("two releases of NCCL: ", Describe(first), " comes before ", Describe(*other)),
        "if the second one is meant:  unset LD_LIBRARY_PATH"};
  }
  return {State::kOk, absl::StrCat("dynamic: ", Describe(first)), ""};
}

Judgement JudgeProfilerPlugin(const Facts& facts) {
  const std::string plugin = facts.Variable("NCCL_PROFILER_PLUGIN");
  const bool is_needed = !facts.nccl.inside.empty();
  if (plugin.empty()) {
    return {State::kOk, "NCCL_PROFILER_PLUGIN is free: the library sets it to itself", ""};
  }
  if (absl::EndsWith(plugin, "librollcall.so")) {
    const int version = facts.nccl.files.empty() ? 0 : facts.nccl.files.front().version;
    if (version != 0 && version < kFirstPluginVersion && !facts.IsSet("LD_PRELOAD")) {
      return {
          State::kProblem,
          absl::StrCat("NCCL ", VersionText(version),
                       " reports too little to a plugin: Rollcall needs NCCL 2.27, or LD_PRELOAD"),
          "rollcall run COMMAND   or   export LD_PRELOAD=$NCCL_PROFILER_PLUGIN"};
    }
    return {State::kOk, absl::StrCat("NCCL_PROFILER_PLUGIN names ", plugin), ""};
  }
  return {is_needed ? State::kProblem : State::kWarning,
          absl::StrCat("NCCL_PROFILER_PLUGIN names another plugin (", plugin,
                       "): an NCCL that the library cannot wrap reports nothing to Rollcall"),
          "unset NCCL_PROFILER_PLUGIN"};
}

}  // namespace rollcall::doctor
