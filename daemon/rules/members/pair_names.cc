// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/members/pair_names.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace rollcall {

std::optional<PairName> FindPairName(const std::string& name) {
  constexpr absl::string_view kPair = ":p2p:";
  const absl::string_view text = name;
  const size_t at = text.rfind(kPair);
  if (at == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> ranks = absl::StrSplit(text.substr(at + kPair.size()), ':');
  PairName pair;
  pair.of = name.substr(0, at);
  const bool are_numbers = ranks.size() == 2 && absl::SimpleAtoi(ranks[0], &pair.ranks[0]) &&
                           absl::SimpleAtoi(ranks[1], &pair.ranks[1]);
  const bool is_pair = are_numbers && pair.ranks[0] >= 0 && pair.ranks[0] < pair.ranks[1];
  return is_pair ? std::make_optional(pair) : std::nullopt;
}

}  // namespace rollcall
