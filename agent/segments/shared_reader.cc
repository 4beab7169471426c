// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/shared_reader.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rollcall {

std::shared_ptr<SegmentReader> ShareReader(std::unique_ptr<SegmentReader> reader,
                                           std::shared_ptr<SpareThreads> threads) {
  if (threads == nullptr || !reader->MayBlock()) return reader;
  const auto close = [threads = std::move(threads)](SegmentReader* closed) {
    // Where no thread is left the file stays open, which costs less than who waits for it.
    threads->Run(absl::StrCat("close ", reinterpret_cast<uintptr_t>(closed)),
                 [closed] { delete closed; }, 0);
  };
  return std::shared_ptr<SegmentReader>(reader.release(), close);
}

}  // namespace rollcall
