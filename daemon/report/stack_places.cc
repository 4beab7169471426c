// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stack_places.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/program_line.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// The site of each process, from its newest sample that shows one.
using Sites = std::map<std::pair<std::string, int32_t>, std::string>;

Sites FindSites(const v1::Incident& incident) {
  Sites places;
  for (const v1::ProcessStack& stack : incident.stacks()) {
    std::string place = rollcall::FindSite(stack);
    if (!place.empty()) places[{stack.host(), stack.pid()}] = std::move(place);
  }
  return places;
}

void AddWaitingSites(const v1::Incident& incident, const Sites& places, v1::Verdict* verdict) {
  const RankRanges waiting = AllRanks(verdict->waiting_ranks(), verdict->waiting_rank_ranges());
  std::map<std::string, std::set<int32_t>> ranks;
  for (const v1::ProcessStack& stack : incident.stacks()) {
    const auto place = places.find({stack.host(), stack.pid()});
    if (place != places.end() && waiting.Contains(stack.rank())) {
      ranks[place->second].insert(stack.rank());
    }
  }
  verdict->clear_waiting_at();
  verdict->set_waiting_at_total(static_cast<int32_t>(ranks.size()));
  for (const auto& [at, here] : ranks) {
    if (static_cast<size_t>(verdict->waiting_at_size()) == kMostSites) break;
    v1::SiteRanks* place = verdict->add_waiting_at();
    place->set_at(at);
    for (const int32_t rank : here) {
      if (static_cast<size_t>(place->ranks_size()) < kMostListed) place->add_ranks(rank);
    }
    place->set_total(static_cast<int32_t>(here.size()));
    place->set_rank_ranges(RankList({here.begin(), here.end()}));
  }
}

}  // namespace

std::string FindSite(const v1::ProcessStack& stack) { return FindPlace(stack).at; }

void AddSites(v1::Incident* incident) { AddSites(*incident, incident); }

void AddSites(const v1::Incident& with_stacks, v1::Incident* incident) {
  const Sites places = FindSites(with_stacks);
  if (places.empty()) return;
  for (v1::Verdict& verdict : *incident->mutable_verdicts()) {
    if (verdict.ranks_of_communicator())
      continue;  // its places are those of the ranks' own threads
    for (v1::Culprit& culprit : *verdict.mutable_culprits()) {
      if (!culprit.at().empty()) continue;  // as the sentence has it
      const auto place = places.find({culprit.host(), culprit.pid()});
      if (place != places.end()) culprit.set_at(place->second);
    }
    AddWaitingSites(with_stacks, places, &verdict);
  }
}

}  // namespace rollcall
