// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/network/network_lines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/whole_numbers.h"
#include "daemon/words/network_words.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr int kFirstHops = 3;  // of a long way; and its last one

std::string RankInWords(int32_t rank) {
  return rank < 0 ? "an unknown rank" : absl::StrCat("rank ", rank);
}

// The ranks that wait for data, each for the next one.
std::string WayInWords(const v1::NetworkWalk& walk) {
  const int waiting = walk.hops_size() - 1;  // the last one is the culprit
  const int64_t unnamed = int64_t{waiting} - kFirstHops - 1 + std::max(walk.hops_left_out(), 0);
  std::vector<std::string> parts;
  for (int i = 0; i < waiting; ++i) {
    if (i >= kFirstHops && i + 1 < waiting) continue;
    const v1::NetworkWalk::Hop& hop = walk.hops(i);
    if (i >= kFirstHops && unnamed > 0) {
      parts.push_back(CountInWords(static_cast<uint64_t>(unnamed), "more rank", "more ranks"));
    }
    parts.push_back(absl::StrCat(RankInWords(hop.rank()),
                                 i == 0 ? " waits for data from " : " from ",
                                 RankInWords(hop.peer())));
  }
  return absl::StrJoin(parts, ", ");
}

std::string FaultInWords(const v1::NetworkWalk& walk) {
  const std::string peer = walk.peer() < 0 ? "its peer" : RankInWords(walk.peer());
  return absl::StrCat(RankInWords(walk.rank()), ": ", NetworkLine(walk.fault(), peer));
}

// How long the transfer at the end of the way has stood; empty if unknown.
std::string StandsInWords(const v1::NetworkWalk& walk) {
  if (walk.hops().empty()) return "";
  const double seconds = walk.hops(walk.hops_size() - 1).waited_seconds();
  return seconds > 0 ? absl::StrCat(", for ", DurationInWords(NsOfSeconds(seconds))) : "";
}

}  // namespace

std::vector<std::string> NetworkLines(const v1::Verdict& verdict) {
  std::vector<std::string> lines;
  const v1::NetworkWalk& walk = verdict.network();
  if (walk.fault().empty()) return lines;
  const std::string way = WayInWords(walk);
  if (!way.empty()) lines.push_back(way);
  lines.push_back(absl::StrCat(FaultInWords(walk), StandsInWords(walk)));
  lines.push_back(absl::StrCat(walk.agreeing(), " of ",
                               CountInWords(static_cast<uint64_t>(std::max(walk.channels(), 0)),
                                            "channel that waits leads", "channels that wait lead"),
                               " there"));
  return lines;
}

}  // namespace rollcall
