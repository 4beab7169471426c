// SPDX-License-Identifier: Apache-2.0
// A segment reader that several threads share. If closing the file can block, a spare thread closes
// it: the kernel sends a request to a FUSE or network file system before it closes the descriptor.
#pragma once

#include <memory>

#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_reader.h"

namespace rollcall {

// `threads`: nullptr if the caller may block.
std::shared_ptr<SegmentReader> ShareReader(std::unique_ptr<SegmentReader> reader,
                                           std::shared_ptr<SpareThreads> threads);

}  // namespace rollcall
