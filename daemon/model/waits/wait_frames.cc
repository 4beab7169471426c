// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/waits/wait_frames.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"

namespace rollcall {
namespace waits {

constexpr WaitFrame kWaitFrames[] = {
#define WAIT_FRAME(kinds, where, name) {kinds, where, name},
#include "daemon/model/waits/wait_frames.def"
};

}  // namespace waits

namespace {

using Tables = std::map<waits::Kinds, std::vector<WaitFrame>>;

Tables MakeTables() {
  Tables tables;
  for (const WaitFrame& frame : waits::kWaitFrames) {
    for (waits::Kinds rest = frame.kinds; rest != 0; rest &= rest - 1) {
      tables[rest & (~rest + 1)].push_back(frame);
    }
  }
  return tables;
}

}  // namespace

const std::vector<WaitFrame>& WaitFramesOf(waits::Kind kind) {
  static const auto* const kTables = new Tables(MakeTables());
  return kTables->at(kind);
}

bool HasWait(absl::string_view text, waits::Kind kind) {
  const auto& frames = WaitFramesOf(kind);
  return std::any_of(frames.begin(), frames.end(), [text](const WaitFrame& frame) {
    return absl::StrContains(text, frame.name);
  });
}

bool IsAtAStore(absl::string_view functions) {
  return HasWait(functions, waits::kStore) || HasWait(functions, waits::kStoreId);
}

bool IsWait(absl::string_view name, waits::Kind kind) {
  const auto& frames = WaitFramesOf(kind);
  return std::any_of(frames.begin(), frames.end(),
                     [name](const WaitFrame& frame) { return frame.name == name; });
}

}  // namespace rollcall
