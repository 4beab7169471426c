// SPDX-License-Identifier: Apache-2.0
// The calls that every communicator of the fleet makes, by position: arguments, and signatures as
// the library computes them. Computed once, then read by all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollcall::fleet {

struct CallArgs {
  uint8_t op = 0;  // an Op of interpose/ops.h
  uint8_t dtype = 0;
  uint8_t reduction = 0;
  uint64_t count = 0;
};

class CallHistory {
 public:
  // Holds the calls at positions below `positions`.
  explicit CallHistory(size_t positions);

  static CallArgs ArgsAt(uint64_t position);
  // What a rank calls that contradicts the others.
  static CallArgs OtherArgs();

  // Of a rank that has made the first `entered` calls.
  uint64_t SignatureOf(uint64_t entered) const;
  // The same, where the last of these calls was OtherArgs().
  uint64_t OtherSignatureOf(uint64_t entered) const;

 private:
  std::vector<uint64_t> signatures_;  // by `entered`
};

}  // namespace rollcall::fleet
