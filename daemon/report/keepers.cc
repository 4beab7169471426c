// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/keepers.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/base_name.h"
#include "daemon/model/client_limits.h"
#include "daemon/report/program_line.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

// threading._shutdown() joins the threads, and before it concurrent.futures joins those of pools.
// Py_FinalizeEx() also runs what the program has registered, in which the main thread shows a line
// of the program.
bool EndsTheProgram(const v1::Frame& frame) {
  if (!frame.python()) return absl::StartsWith(frame.function(), "wait_for_thread_shutdown");
  const absl::string_view file = BaseName(frame.file());
  return (file == "threading.py" && frame.function() == "_shutdown") ||
         (file == "thread.py" && frame.function() == "_python_exit");
}

bool HasEndedItsProgram(const v1::ThreadStack& main) {
  return std::any_of(main.frames().begin(), main.frames().end(), EndsTheProgram) &&
         std::all_of(main.frames().begin(), main.frames().end(), IsLibraryFrame);
}

}  // namespace

std::vector<ThreadPlace> FindKeepers(const v1::ProcessStack& stack) {
  std::vector<ThreadPlace> keepers;
  const auto main = std::find_if(stack.threads().begin(), stack.threads().end(),
                                 [&](const auto& thread) { return thread.tid() == stack.pid(); });
  if (main == stack.threads().end() || !HasEndedItsProgram(*main)) return keepers;
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (!thread.keeps_process() || keepers.size() == limits::kKeepers) continue;
    keepers.push_back({static_cast<uint32_t>(thread.tid()), thread.name(), PlaceOfThread(thread)});
  }
  std::stable_partition(keepers.begin(), keepers.end(),
                        [](const ThreadPlace& keeper) { return !keeper.place.at.empty(); });
  return keepers;
}

}  // namespace rollcall
