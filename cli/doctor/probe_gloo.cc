// SPDX-License-Identifier: Apache-2.0
// Which functions of gloo a PyTorch has, of those that the library wraps. The names are those of
// calls.def, so what is added there is looked for here.
#include "cli/doctor/probe_gloo.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/symbols/symbol_name.h"
#include "cli/doctor/elf_facts.h"
#include "interpose/ops.h"

namespace rollcall::doctor {
namespace {

constexpr absl::string_view kNamespace = "_ZN4c10d";  // of all wrapped functions of PyTorch
constexpr char kFile[] = "libtorch_cpu.so";

struct Wrapped {
  absl::string_view symbol;
  CallKind kind;
};

constexpr Wrapped kWrapped[] = {
#define CALL(symbol, op, code, kind) {#symbol, CallKind::k##kind},
#define ALIAS(symbol, op) {#symbol, OpKind(Op::k##op)},
#include "interpose/calls.def"
#undef CALL
};

// Returns the number at `*at`, or 0, and moves `*at` behind it.
size_t ReadNumber(absl::string_view text, size_t* at) {
  size_t number = 0;
  for (; *at < text.size() && absl::ascii_isdigit(text[*at]); ++*at) {
    number = number * 10 + static_cast<size_t>(text[*at] - '0');
  }
  return number;
}

// The part of a mangled name before the arguments: that of a::b(int) is _ZN1a1bE. It is a list of
// names, each after its length; constructors and destructors are two letters, such as C1.
std::string WithoutArguments(absl::string_view symbol) {
  constexpr size_t kBegin = 3;  // "_ZN"
  size_t at = kBegin;
  while (at < symbol.size() && symbol[at] != 'E') {
    const size_t length = ReadNumber(symbol, &at);
    at += length == 0 ? 2 : length;
  }
  return std::string(symbol.substr(0, at + 1));
}

// "ProcessGroupGloo::send". Both kinds of a destructor have one name.
std::string NameOf(const std::string& without_arguments) {
  const std::string text = Demangle(without_arguments + "v");
  return std::string(absl::StripPrefix(text.substr(0, text.find('(')), "c10d::"));
}

// A function by its name: PyTorch's versions have it with other arguments, and so do its two ABIs.
struct Function {
  bool is_found = false;
  bool is_changed = false;  // it is there, with arguments that are not in the table
  bool is_call = false;     // of all ranks; a version may lack it
};

std::map<std::string, Function> FindFunctions(const std::set<std::string>& defined) {
  std::set<std::string> names;
  for (const std::string& symbol : defined) names.insert(WithoutArguments(symbol));
  std::map<std::string, Function> functions;
  for (const Wrapped& one : kWrapped) {
    if (!absl::StartsWith(one.symbol, kNamespace)) continue;
    const std::string name = WithoutArguments(one.symbol);
    Function& function = functions[NameOf(name)];
    function.is_found |= defined.count(std::string(one.symbol)) != 0;
    function.is_changed |= names.count(name) != 0;
    function.is_call |= one.kind == CallKind::kCollective;
  }
  return functions;
}

std::string VersionOfTorch(const std::string& site) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(site, ignored)) {
    const std::string name = entry.path().filename().string();
    absl::string_view version = name;
    if (absl::ConsumePrefix(&version, "torch-") && absl::ConsumeSuffix(&version, ".dist-info")) {
      return std::string(version);
    }
  }
  return "";
}

// Sets path and version.
void FindTorch(const ProgramFacts& program, const std::string& search_path, GlooFacts* facts) {
  const auto has_file = [facts](const std::string& folder) {
    const std::string path = absl::StrCat(folder, "/", kFile);
    if (access(path.c_str(), R_OK) == 0) facts->path = path;
    return !facts->path.empty();
  };
  for (const std::string& folder : program.python_folders) {
    if (!has_file(folder + "/torch/lib")) continue;
    facts->version = VersionOfTorch(folder);
    return;
  }
  std::vector<std::string> folders = program.elf.rpath;
  for (const absl::string_view folder : absl::StrSplit(search_path, ':', absl::SkipEmpty())) {
    folders.emplace_back(folder);
  }
  folders.insert(folders.end(), program.elf.runpath.begin(), program.elf.runpath.end());
  for (const std::string& folder : folders) {
    if (has_file(folder)) return;
  }
}

}  // namespace

void CompareWithTable(const std::set<std::string>& defined, GlooFacts* facts) {
  for (const auto& [name, function] : FindFunctions(defined)) {
    ++facts->known;
    if (function.is_found) {
      ++facts->found;
    } else if (function.is_changed) {
      facts->changed.push_back(name);
    } else {
      (function.is_call ? facts->absent : facts->lost).push_back(name);
    }
  }
}

GlooFacts FindGloo(const ProgramFacts& program, const Environment& environment) {
  GlooFacts facts;
  const auto search_path = environment.find("LD_LIBRARY_PATH");
  FindTorch(program, search_path == environment.end() ? "" : search_path->second, &facts);
  if (!facts.path.empty()) CompareWithTable(FunctionsIn(facts.path, kNamespace), &facts);
  return facts;
}

}  // namespace rollcall::doctor
