// SPDX-License-Identifier: Apache-2.0
#include "cli/joint_findings.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {
namespace {

constexpr size_t kMostErrorLines = 8;

int Weight(const v1::Incident& incident) {
  if (incident.verdicts().empty()) return 0;
  const std::string& certainty = incident.verdicts(0).certainty();
  return certainty == "certain" ? 3 : certainty == "likely" ? 2 : 1;
}

// The rank that wrote the line, by its own word or by its process.
int32_t RankOf(const LogWriter& writer, const RankPlaces& places) {
  if (writer.rank >= 0 || writer.pid == 0) return writer.rank;
  int32_t found = -1;
  for (const auto& [rank, place] : places) {
    if (place.second != writer.pid) continue;
    if (place.first == writer.host) return rank;
    found = found == -1 ? rank : -2;  // the log may name the host in another way
  }
  return std::max(found, -1);
}

std::string InWords(const ErrorLine& error, int32_t rank) {
  const std::string who = rank >= 0               ? absl::StrCat("rank ", rank)
                          : error.writer.pid != 0 ? absl::StrCat("process ", error.writer.pid,
                                                                 " on ", error.writer.host)
                                                  : "a rank that the log does not name";
  return absl::StrCat("first error of ", who, error.time.empty() ? "" : ", at " + error.time, ": ",
                      error.text, " (", error.path, ":", error.line, ")");
}

}  // namespace

RankPlaces PlacesOfRanks(const JobState& state) {
  RankPlaces places;
  for (const Process& process : state.processes) {
    if (process.global_rank < 0 || !process.has_segment) continue;
    places.emplace(process.global_rank, std::make_pair(process.host, process.pid));
  }
  return places;
}

bool IsStronger(const v1::Incident& a, const v1::Incident& b) { return Weight(a) >= Weight(b); }

void AddOtherSource(const v1::Incident& other, const std::string& other_name, v1::Incident* lead) {
  if (lead->verdicts().empty()) return;
  v1::Verdict* root = lead->mutable_verdicts(0);
  if (other.verdicts().empty()) {
    root->add_missing_evidence(absl::StrCat(other_name, " show no hang"));
    return;
  }
  const v1::Verdict& theirs = other.verdicts(0);
  const bool agrees =
      theirs.cause() == root->cause() && theirs.culprit_ranks() == root->culprit_ranks();
  if (agrees) {
    root->add_evidence(absl::StrCat(other_name, " show the same: ", theirs.summary()));
  } else {
    root->add_missing_evidence(
        absl::StrCat(other_name, " show something else: ", theirs.summary()));
  }
}

void AddPlacesOfRanks(const RankPlaces& places, v1::Incident* incident) {
  for (v1::Verdict& verdict : *incident->mutable_verdicts()) {
    for (v1::Culprit& culprit : *verdict.mutable_culprits()) {
      const auto place = places.find(culprit.rank());
      if (place == places.end() || culprit.pid() != 0) continue;
      if (culprit.host().empty()) culprit.set_host(place->second.first);
      culprit.set_pid(place->second.second);
    }
  }
}

void AddErrorLines(std::vector<ErrorLine> errors, const RankPlaces& places,
                   v1::Incident* incident) {
  if (incident->verdicts().empty()) return;
  v1::Verdict* root = incident->mutable_verdicts(0);
  const RankRanges culprits(root->culprit_ranks());
  std::stable_sort(errors.begin(), errors.end(), [&](const ErrorLine& a, const ErrorLine& b) {
    return culprits.Contains(RankOf(a.writer, places)) >
           culprits.Contains(RankOf(b.writer, places));
  });
  std::set<int32_t> named;
  size_t lines = 0;
  for (const ErrorLine& error : errors) {
    const int32_t rank = RankOf(error.writer, places);
    if (rank >= 0 && !named.insert(rank).second) continue;
    if (lines++ == kMostErrorLines) {
      root->add_evidence("the logs hold errors of more ranks");
      return;
    }
    root->add_evidence(InWords(error, rank));
  }
}

}  // namespace rollcall
