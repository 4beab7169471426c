// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/shared_reader.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rollcall {

std::shared_ptr<SegmentReader> ShareReader(std::unique_ptr<SegmentReader> reader,
                                           std::shared_ptr<SpareThreads> threads) {
  if (threads == nullptr || !reader->file().MayBlock()) return reader;
  const auto close = [threads = std::move(threads)](SegmentReader* closed) {
    // A read that returns after Cancel() is the last owner, and Run() refuses.
    if (SpareThreads::IsCurrentThread()) {
      delete closed;
      return;
    }
    // If no thread is free, the file stays open. That costs less than a blocked tick.
    threads->Run(
        absl::StrCat("close ", reinterpret_cast<uintptr_t>(closed)), [closed] { delete closed; },
        0);
  };
  return std::shared_ptr<SegmentReader>(reader.release(), close);
}

}  // namespace rollcall
