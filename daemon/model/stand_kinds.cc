// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/stand_kinds.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/model/waits/wait_frames.h"

namespace rollcall {
namespace {

using Names = std::vector<absl::string_view>;

struct KindRow {
  StandFor whom;
  stands::Traits traits;
  const char* words;
};

constexpr KindRow kKinds[] = {
#define X(kind, whom, traits, words) {StandFor::whom, traits, words},
    ROLLCALL_STAND_KINDS(X)
#undef X
};

const KindRow& RowOf(StandKind kind) { return kKinds[static_cast<size_t>(kind)]; }

struct StandFrame {
  StandKind kind;
  absl::string_view where, name;
  bool calls = false;  // a STAND_CALL
};

constexpr StandFrame kStandFrames[] = {
#define STAND_FRAME(kind, where, name) {StandKind::kind, where, name},
#define STAND_CALL(where, name) {StandKind::kIdle, where, name, true},
#include "daemon/model/waits/wait_frames.def"
};

constexpr absl::string_view kLaunchersOfOtherHosts[] = {
#define LAUNCHER_OF_OTHER_HOSTS(name) name,
#include "daemon/model/waits/wait_frames.def"
};

// A short name may be a part of another one.
constexpr size_t kLongName = 8;

bool IsOfPython(absl::string_view function) {
  return absl::StrContains(function, '.') && !absl::StrContains(function, "::");
}

// "sem_wait" of "sem_wait.constprop.0": the compiler's own copies of functions.
absl::string_view WithoutCopy(absl::string_view function) {
  for (const absl::string_view copy : {".constprop", ".isra", ".part", ".cold", ".lto_priv"}) {
    function = function.substr(0, function.find(copy));
  }
  return function;
}

absl::string_view WithoutPrefix(absl::string_view function) {
  if (!absl::ConsumePrefix(&function, "__libc_")) {
    while (absl::ConsumePrefix(&function, "_")) {
    }
  }
  return function;
}

bool FitsPython(const StandFrame& row, absl::string_view function) {
  const size_t dot = function.find('.');
  if (!row.where.empty() && function.substr(0, dot) != row.where) return false;
  return row.name.empty() || absl::EndsWith(function, absl::StrCat(".", row.name));
}

bool Fits(const StandFrame& row, absl::string_view function) {
  if (IsOfPython(function)) return FitsPython(row, function);
  // A function of Cython has the name of its module and class, whatever it calls.
  if (!row.where.empty() || absl::StartsWith(function, "__pyx_")) return false;
  const bool is_long = row.name.size() >= kLongName || absl::StrContains(row.name, "_") ||
                       absl::StrContains(row.name, "::");
  return WithoutPrefix(function) == row.name || (is_long && absl::StrContains(function, row.name));
}

const StandFrame* RowOf(absl::string_view function) {
  const auto* const row = std::find_if(std::begin(kStandFrames), std::end(kStandFrames),
                                       [&](const StandFrame& r) { return Fits(r, function); });
  return row == std::end(kStandFrames) ? nullptr : row;
}

// The index of the outermost of the first `count` functions that waits, if no thread waits for work
// there; else `count`.
size_t FindWaitOfACall(const Names& functions, size_t count) {
  for (size_t i = count; i-- > 0;) {
    const StandFrame* row = RowOf(functions[i]);
    if (row != nullptr) return HasTrait(row->kind, stands::kNoWork) ? i : count;
  }
  return count;
}

// What a child of multiprocessing has inherited is not a part of its own stack.
void RemoveParents(Names* functions) {
  const auto fork =
      std::find_if(functions->begin(), functions->end(), [](absl::string_view function) {
        return absl::StartsWith(function, "popen_fork.") && absl::EndsWith(function, "._launch");
      });
  functions->erase(fork, functions->end());
}

// The index of the program's innermost function; the number of functions, if none is known.
size_t FindProgram(const StackPlace& place, const Names& functions) {
  const size_t in = place.at.rfind(" in ");
  if (in == std::string::npos) return functions.size();
  std::string name = place.at.substr(in + 4);
  // As StackPlace::functions has it.
  const std::string inside = "<locals>.";
  const size_t local = name.rfind(inside);
  if (local != std::string::npos) name = name.substr(local + inside.size());
  std::replace(name.begin(), name.end(), ' ', '_');
  const auto at = std::find_if(functions.begin(), functions.end(), [&](absl::string_view f) {
    return f == name || absl::EndsWith(f, absl::StrCat(".", name));
  });
  return static_cast<size_t>(at - functions.begin());
}

// "Queue.get" of "queue.Queue.get".
std::string NameOf(absl::string_view function) {
  const size_t dot = function.find('.');
  const bool has_class = IsOfPython(function) && function.find('.', dot + 1) != std::string::npos;
  return std::string(has_class ? function.substr(dot + 1) : function);
}

StandKind KindOfEnd(const StackPlace& place, absl::string_view wait_channel) {
  if (place.end == EndKind::kPipe || HasWait(wait_channel, waits::kPipeInKernel)) {
    return StandKind::kPipe;
  }
  if (place.end == EndKind::kProcess) return StandKind::kChild;
  if (place.end == EndKind::kSocket || HasWait(wait_channel, waits::kSocketInKernel)) {
    return StandKind::kSocket;
  }
  if (absl::StrContains(wait_channel, "setlk") || absl::StrContains(wait_channel, "locks_lock")) {
    return StandKind::kFileLock;
  }
  return StandKind::kUnknown;
}

// PyTorch has the same functions for all of its backends. What they wait in shows the backend.
StandKind KindOfBackend(const Names& functions) {
  const auto has = [&functions](const auto& is_of_it) {
    return std::any_of(functions.begin(), functions.end(), is_of_it);
  };
  if (has([](absl::string_view f) {
        return absl::StrContains(f, "ProcessGroupNCCL") || absl::StartsWith(f, "nccl");
      })) {
    return StandKind::kNccl;
  }
  if (has([](absl::string_view f) {
        return absl::StrContains(f, "ProcessGroupGloo") || absl::StartsWith(f, "gloo::");
      })) {
    return StandKind::kGloo;
  }
  const bool waits_for_device = has([](absl::string_view f) { return HasWait(f, waits::kGpu); });
  return waits_for_device ? StandKind::kTorchOnDevice : StandKind::kTorch;
}

}  // namespace

StandFor WhomItIsFor(StandKind kind) { return RowOf(kind).whom; }

bool HasTrait(StandKind kind, stands::Trait trait) { return (RowOf(kind).traits & trait) != 0; }

const char* StandKindInWords(StandKind kind) { return RowOf(kind).words; }

StandFunction StandsIn(const StackPlace& place, absl::string_view wait_channel) {
  Names functions = absl::StrSplit(place.functions, ' ', absl::SkipEmpty());
  for (absl::string_view& function : functions) function = WithoutCopy(function);
  RemoveParents(&functions);
  const size_t program = FindProgram(place, functions);
  // A program may have a queue of its own that is built like those of the engines.
  for (size_t i = program; i < functions.size(); ++i) {
    const StandFrame* row = RowOf(functions[i]);
    if (row != nullptr && row->kind == StandKind::kRing) return {row->kind, NameOf(functions[i])};
  }
  for (size_t i = program; i-- > 0;) {
    const StandFrame* row = RowOf(functions[i]);
    if (row == nullptr) continue;
    if (row->calls) {
      const size_t inside = FindWaitOfACall(functions, i);
      return {inside == i ? row->kind : RowOf(functions[inside])->kind, NameOf(functions[inside])};
    }
    if (row->kind == StandKind::kTorch) {
      return {KindOfBackend(functions), NameOf(functions[i])};
    }
    const StandKind end = KindOfEnd(place, wait_channel);
    // What stands in the kernel for a pipe or a socket is not a pause.
    if (row->kind == StandKind::kSleep && end != StandKind::kUnknown) return {end, place.inside};
    return {row->kind, NameOf(functions[i])};
  }
  return {KindOfEnd(place, wait_channel), place.inside};
}

bool WaitsForOtherHosts(absl::string_view program) {
  return std::find(std::begin(kLaunchersOfOtherHosts), std::end(kLaunchersOfOtherHosts), program) !=
         std::end(kLaunchersOfOtherHosts);
}

}  // namespace rollcall
