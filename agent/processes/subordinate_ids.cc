// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/subordinate_ids.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

constexpr uint32_t kBlock = 65536;

}  // namespace

uint32_t FirstOfItsBlock(absl::string_view subuid, uint32_t id) {
  for (const absl::string_view line : absl::StrSplit(subuid, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(absl::StripAsciiWhitespace(line), ':');
    uint32_t first = 0, count = 0;
    const bool fits = fields.size() == 3 && absl::SimpleAtoi(fields[1], &first) &&
                      absl::SimpleAtoi(fields[2], &count);
    if (fits && id >= first && id - first < count) return id - (id - first) % kBlock;
  }
  return id;
}

}  // namespace rollcall
