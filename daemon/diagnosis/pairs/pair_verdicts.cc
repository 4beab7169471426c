// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/pairs/pair_verdicts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/words/fit_sentence.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/sentences.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

using Parts = std::set<size_t>;

Parts PartsOfCulprits(const JoinedJobs& joined, const Verdict& verdict) {
  Parts parts;
  for (const Culprit& culprit : verdict.culprits) {
    const int part = joined.PartOf(culprit.process);
    if (part >= 0) parts.insert(static_cast<size_t>(part));
  }
  return parts;
}

Parts PartsOfWaiting(const JoinedJobs& joined, const Verdict& verdict) {
  Parts parts;
  for (const int32_t process : verdict.waiting_processes) {
    const int part = joined.PartOf(process);
    if (part >= 0) parts.insert(static_cast<size_t>(part));
  }
  return parts;
}

// Of jobs that may report it as well, the first by name: all of them come to the same one.
std::optional<size_t> FirstByName(const JoinedJobs& joined, const Parts& parts) {
  std::optional<size_t> first;
  for (const size_t part : parts) {
    if (!joined.parts[part].lives) continue;
    if (!first || joined.parts[part].key < joined.parts[*first].key) first = part;
  }
  return first;
}

// Returns the living parts whose incident is the oldest; empty if no such part has an open one.
Parts WithOldestIncident(const JoinedJobs& joined, const Parts& culprits, const Parts& waiting,
                         const OpenedNs& opened_ns) {
  Parts oldest;
  for (const Parts* parts : {&culprits, &waiting}) {
    for (const size_t part : *parts) {
      if (!opened_ns[part] || !joined.parts[part].lives) continue;
      if (!oldest.empty() && *opened_ns[part] < *opened_ns[*oldest.begin()]) oldest.clear();
      if (oldest.empty() || *opened_ns[part] == *opened_ns[*oldest.begin()]) oldest.insert(part);
    }
  }
  return oldest;
}

// The number of the job that reports the verdict.
size_t TellerOf(const JoinedJobs& joined, const Verdict& verdict, const OpenedNs& opened_ns) {
  const Parts culprits = PartsOfCulprits(joined, verdict);
  const Parts waiting = PartsOfWaiting(joined, verdict);
  const Parts telling = WithOldestIncident(joined, culprits, waiting, opened_ns);
  for (const Parts* parts : {&telling, &culprits, &waiting}) {
    if (const std::optional<size_t> first = FirstByName(joined, *parts)) return *first;
  }
  return 0;
}

bool Involves(const JoinedJobs& joined, const Verdict& verdict, size_t part) {
  return PartsOfCulprits(joined, verdict).count(part) != 0 ||
         PartsOfWaiting(joined, verdict).count(part) != 0;
}

// "ranks 2-3 are ranks 0-1 of job "engine""; empty if none of these ranks is of the part.
std::string PartInWords(const JoinedJobs& joined, size_t part, const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return "";
  std::vector<int32_t> there;
  for (const int32_t rank : ranks) there.push_back(rank - joined.parts[part].first_rank);
  return absl::StrCat(RanksInWords(ranks), PluralForm(ranks.size(), " is ", " are "),
                      RanksInWords(there), " of job ", ToText(joined.parts[part].key));
}

std::vector<int32_t> CulpritsIn(const JoinedJobs& joined, size_t part, const Verdict& verdict) {
  std::vector<int32_t> ranks;
  for (const Culprit& culprit : verdict.culprits) {
    const bool is_rank = culprit.rank >= joined.parts[part].first_rank;
    if (is_rank && joined.PartOf(culprit.process) == static_cast<int>(part)) {
      ranks.push_back(culprit.rank);
    }
  }
  return ranks;
}

// All ranks of the part that the verdict names.
std::vector<int32_t> RanksIn(const JoinedJobs& joined, size_t part, const Verdict& verdict) {
  std::vector<int32_t> ranks = CulpritsIn(joined, part, verdict);
  const size_t waiting = std::min(verdict.waiting_ranks.size(), verdict.waiting_processes.size());
  for (size_t i = 0; i < waiting; ++i) {
    const bool is_of_part = joined.PartOf(verdict.waiting_processes[i]) == static_cast<int>(part);
    if (is_of_part && verdict.waiting_ranks[i] >= joined.parts[part].first_rank) {
      ranks.push_back(verdict.waiting_ranks[i]);
    }
  }
  return ranks;
}

// Says which ranks are those of other jobs, first of all who is to blame.
void NameJobs(const JoinedJobs& joined, Verdict* verdict) {
  std::string lead;
  for (size_t part = 1; part < joined.parts.size(); ++part) {
    const std::string culprits = PartInWords(joined, part, CulpritsIn(joined, part, *verdict));
    if (!culprits.empty()) absl::StrAppend(&lead, culprits, ": ");
    const std::string all = PartInWords(joined, part, RanksIn(joined, part, *verdict));
    if (!all.empty()) verdict->evidence.push_back(all);
  }
  if (lead.empty()) return;
  const std::string tail = WaitTail(*verdict);
  std::string text = verdict->summary;
  const bool has_tail =
      text.size() > tail.size() && text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
  if (has_tail) text.resize(text.size() - tail.size());
  const size_t room = kLongestSentence - (has_tail ? tail.size() : 0);
  verdict->summary = absl::StrCat(FitSentence(lead + text, room), has_tail ? tail : "");
}

void NameJobOf(const JoinedJobs& joined, Culprit* culprit) {
  const int part = joined.PartOf(culprit->process);
  if (part <= 0) return;
  const JoinedJobs::Part& of = joined.parts[static_cast<size_t>(part)];
  culprit->other_job = OtherJob{of.key, std::max(culprit->rank - of.first_rank, -1)};
}

// The state of the first job has no processes of the others.
void LeaveOutProcesses(const JoinedJobs& joined, Verdict* verdict) {
  std::vector<int32_t> ranks, processes;
  const size_t known = std::min(verdict->waiting_ranks.size(), verdict->waiting_processes.size());
  // Those without a process come last: the first ones fit their processes.
  for (const bool of_first : {true, false}) {
    for (size_t i = 0; i < verdict->waiting_ranks.size(); ++i) {
      const bool is_own = i < known && joined.PartOf(verdict->waiting_processes[i]) == 0;
      if (is_own != of_first) continue;
      ranks.push_back(verdict->waiting_ranks[i]);
      if (is_own) processes.push_back(verdict->waiting_processes[i]);
    }
  }
  verdict->waiting_ranks = std::move(ranks);
  verdict->waiting_processes = std::move(processes);
  for (Culprit& culprit : verdict->culprits) {
    NameJobOf(joined, &culprit);
    if (joined.PartOf(culprit.process) != 0) culprit.process = -1;
  }
}

}  // namespace

PairVerdicts SplitVerdicts(const JoinedJobs& joined, std::vector<Verdict> verdicts,
                           const OpenedNs& opened_ns) {
  PairVerdicts split;
  bool is_first_involved = false;
  for (const Verdict& verdict : verdicts) {
    if (IsWarning(verdict.cause)) continue;
    is_first_involved = is_first_involved || Involves(joined, verdict, 0);
    if (verdict.is_consequence) continue;
    const size_t teller = TellerOf(joined, verdict, opened_ns);
    if (teller == 0) {
      split.own.push_back(verdict);
    } else if (!split.told_by) {
      split.told_by = joined.parts[teller].key;
      split.summary = verdict.summary;
    }
  }
  if (!is_first_involved || !split.own.empty()) split.told_by.reset();
  if (split.own.empty()) return split;
  std::copy_if(verdicts.begin(), verdicts.end(), std::back_inserter(split.own),
               [&](const Verdict& v) { return v.is_consequence && Involves(joined, v, 0); });
  for (Verdict& verdict : split.own) {
    NameJobs(joined, &verdict);
    LeaveOutProcesses(joined, &verdict);
  }
  return split;
}

}  // namespace rollcall
