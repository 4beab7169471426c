// SPDX-License-Identifier: Apache-2.0
// Prints facts of a segment: the exception that ended the process, and the communicators.
//
//   segment_facts FILE
//
// Compiled by the tests against interpose/segment.h, so that it follows the layout.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "interpose/segment.h"

namespace segment = rollcall::segment;

int main(int, char** arguments) {
  std::ifstream file(arguments[1], std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < segment::kHeaderBytes) return 1;
  const auto* header = reinterpret_cast<const segment::SegmentHeader*>(bytes.data());
  std::printf("NCCL %d\n", header->nccl_version);
  std::printf("error %.*s\n", static_cast<int>(sizeof(header->error)), header->error);
  for (uint32_t i = 0; i < header->comm_count.load(); ++i) {
    const size_t offset = header->header_bytes + size_t{i} * header->comm_block_bytes;
    if (offset + sizeof(segment::CommEntry) > bytes.size()) return 1;
    const auto* comm = reinterpret_cast<const segment::CommEntry*>(bytes.data() + offset);
    const bool failed = comm->state.load() == static_cast<uint32_t>(segment::CommState::kFailed);
    std::printf("communicator of %u, rank %u: %s\n", comm->size.load(), comm->rank.load(),
                failed ? "failed" : "not failed");
  }
}
