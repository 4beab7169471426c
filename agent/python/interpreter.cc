// SPDX-License-Identifier: Apache-2.0
#include "agent/python/interpreter.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr int kMostCandidates = 16;  // files that may have the interpreter

enum Symbol { kRuntime, kVersion, kCodeType, kStringType, kBytesType };
const std::vector<std::string>& SymbolNames() {
  static const std::vector<std::string> names = {"_PyRuntime", "Py_Version", "PyCode_Type",
                                                 "PyUnicode_Type", "PyBytes_Type"};
  return names;
}

absl::string_view BaseName(const std::string& path) {
  return absl::string_view(path).substr(path.rfind('/') + 1);
}

// Programs with a built-in interpreter have other names; Find() tries them afterwards.
bool IsNamedPython(const ProcMap& map) { return absl::StrContains(BaseName(map.path), "python"); }

// Whether this is the mapping of the file's beginning, the lowest one of each file.
bool IsFirstOfFile(const ProcMap& map) { return map.offset == 0 && !map.path.empty(); }

// Returns 11 for "/usr/lib/libpython3.11.so.1.0" or "/usr/bin/python3.11"; 0 if there is no version
// in the name.
int PythonMinorFromPath(const std::string& path) {
  const absl::string_view name = BaseName(path);
  const size_t at = name.find("python3.");
  if (at == absl::string_view::npos) return 0;
  return std::atoi(std::string(name.substr(at + 8)).c_str());
}

// For interpreters that are built into a program: the paths of their extension modules and packages
// contain the version. 0 if there is no such file.
int MinorFromOtherFiles(const RawSample& sample) {
  for (const ProcMap& map : sample.maps) {
    const size_t tag = map.path.find(".cpython-3");
    if (tag == std::string::npos) continue;
    const int minor = std::atoi(map.path.c_str() + tag + 10);
    if (minor > 0) return minor;
  }
  for (const ProcMap& map : sample.maps) {
    const size_t folder = map.path.find("/python3.");
    if (folder == std::string::npos) continue;
    const int minor = std::atoi(map.path.c_str() + folder + 9);
    if (minor > 0) return minor;
  }
  return 0;
}

std::optional<PythonLayout> FindLayout(const RawSample& sample, const std::string& path,
                                       uint64_t runtime, uint64_t version_address,
                                       ProcessMemory* memory, std::string* problem) {
  uint64_t words[kDebugOffsetWords];
  if (memory->Read(runtime, words, sizeof(words))) {
    const auto published = PythonLayoutFromDebugOffsets(words);
    if (published.has_value()) return published;
  }
  uint64_t version = 0;
  int minor = 0;
  if (version_address != 0 && memory->ReadValue(version_address, &version) && version >> 24 == 3) {
    minor = static_cast<int>(version >> 16 & 0xff);
  }
  if (minor == 0) minor = PythonMinorFromPath(path);
  if (minor == 0) minor = MinorFromOtherFiles(sample);
  const PythonLayout* layout = FindPythonLayout(minor);
  if (layout != nullptr) return *layout;
  *problem = absl::StrCat("no Python frames: Rollcall supports CPython 3.8 to 3.14, and ", path,
                          " is ", minor == 0 ? "of an unknown version" : "3.",
                          minor == 0 ? "" : absl::StrCat(minor));
  return std::nullopt;
}

}  // namespace

std::optional<PythonInterpreter> FindPython(const RawSample& sample, PythonSymbols* symbols,
                                            ProcessMemory* memory, ProcessMemory* resident,
                                            std::string* problem) {
  int candidates = 0;
  for (const bool named : {true, false}) {
    for (const ProcMap& map : sample.maps) {
      if (!IsFirstOfFile(map) || IsNamedPython(map) != named) continue;
      // Search only libraries with "python" in their name and the program itself: a search of every
      // library of a training job would take seconds.
      if (!named && map.start != sample.maps.front().start) continue;
      if (++candidates > kMostCandidates) break;
      const FoundSymbols symbols_of_file = symbols->Find(sample.pid, map, SymbolNames(), memory);
      const std::vector<uint64_t>& found = symbols_of_file.distances;
      if (found[kRuntime] == 0) continue;
      const auto in_process = [&](Symbol symbol) {
        return found[symbol] == 0 ? 0 : found[symbol] + map.start;
      };
      ProcessMemory* const readable = symbols_of_file.only_resident ? resident : memory;
      const auto layout = FindLayout(sample, map.path, in_process(kRuntime), in_process(kVersion),
                                     readable, problem);
      if (!layout.has_value()) return std::nullopt;
      return PythonInterpreter{*layout,
                               map.path,
                               in_process(kRuntime),
                               in_process(kCodeType),
                               in_process(kStringType),
                               in_process(kBytesType),
                               symbols_of_file.only_resident};
    }
  }
  return std::nullopt;
}

}  // namespace rollcall
