// SPDX-License-Identifier: Apache-2.0
// A segment's reader that several threads use. Its file is closed on a thread that can be spared
// where that can block: a file system that a program answers for is asked before a descriptor goes.
#pragma once

#include <memory>

#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_reader.h"

namespace rollcall {

// `threads`: nullptr where the caller may block.
std::shared_ptr<SegmentReader> ShareReader(std::unique_ptr<SegmentReader> reader,
                                           std::shared_ptr<SpareThreads> threads);

}  // namespace rollcall
