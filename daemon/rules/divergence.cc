// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/divergence.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "daemon/model/progress.h"
#include "daemon/rules/tie.h"

namespace rollcall {
namespace {

constexpr uint64_t kAligned = 256;  // calls to compare from the divergence on

// Ranks with equal histories. All their records together may reach further back than the
// records of one rank. The first member represents all.
struct History {
  std::vector<int32_t> ranks;
  std::vector<const Member*> members;
  uint64_t entered() const { return members.front()->entered; }
};

using Ranks = std::set<int32_t>;

std::vector<History> GroupByHistory(const Communicator& comm, const Ranks& left_out) {
  std::map<std::pair<uint64_t, uint64_t>, History> known;
  std::vector<History> result;
  History* last = nullptr;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.entered == 0 || left_out.count(rank) != 0) continue;
    if (member.signature == 0) {  // not known: no proof that it equals another history
      result.push_back({{rank}, {&member}});
      continue;
    }
    // Neighbours are usually at the same position.
    if (last == nullptr || last->members.front()->entered != member.entered ||
        last->members.front()->signature != member.signature) {
      last = &known[{member.entered, member.signature}];
    }
    last->ranks.push_back(rank);
    last->members.push_back(&member);
  }
  for (auto& [key, history] : known) result.push_back(std::move(history));
  return result;
}

const CallRecord* FindRecord(const History& history, uint64_t position) {
  // Two members are enough: rings that are written together lose records together.
  const size_t searched = std::min<size_t>(history.members.size(), 2);
  for (size_t i = 0; i < searched; ++i) {
    const CallRecord* record = FindCollective(*history.members[i], position);
    if (record != nullptr) return record;
  }
  return nullptr;
}

struct CheckpointComparison {
  uint64_t agreed = 0;     // checkpoints prove that the calls before this are equal
  uint64_t differ_at = 0;  // position of the first checkpoint that differs; 0 if none differs
};

CheckpointComparison CompareCheckpoints(const std::vector<History>& histories) {
  std::map<uint64_t, std::vector<uint64_t>> by_position;
  for (const History& history : histories) {
    for (const Checkpoint& checkpoint : history.members.front()->checkpoints) {
      const auto& [position, signature] = checkpoint;
      if (position <= history.entered()) by_position[position].push_back(signature);
    }
  }
  CheckpointComparison comparison;
  for (const auto& [position, signatures] : by_position) {
    const uint64_t first = signatures.front();
    const bool equal = std::all_of(signatures.begin(), signatures.end(),
                                   [first](uint64_t s) { return s == first; });
    if (!equal) {
      if (position > 0) comparison.differ_at = position;
      break;
    }
    if (signatures.size() == histories.size()) comparison.agreed = position;
  }
  return comparison;
}

// Orders calls; equal for calls that SameCall() takes as one.
auto CallKey(const CallArgs& call) {
  return std::make_tuple(Canonical(call.op), call.dtype, call.count, call.reduction, call.peer);
}
using SideByCall = std::map<decltype(CallKey(CallArgs())), size_t>;

void AddToSide(const History& history, const CallArgs& call, int64_t since_ns,
               std::vector<Side>* sides, SideByCall* known) {
  const auto [at, is_new] = known->emplace(CallKey(call), sides->size());
  if (is_new) sides->push_back(Side{{}, call, since_ns});
  Side& side = (*sides)[at->second];
  side.ranks.insert(side.ranks.end(), history.ranks.begin(), history.ranks.end());
  side.since_ns = std::min(side.since_ns, since_ns);
}

void FinishSides(const std::vector<History>& histories, Divergence* divergence) {
  std::stable_sort(divergence->sides.begin(), divergence->sides.end(),
                   [](const Side& a, const Side& b) { return a.ranks.size() > b.ranks.size(); });
  for (Side& side : divergence->sides) std::sort(side.ranks.begin(), side.ranks.end());
  for (const History& history : histories) {
    if (history.entered() <= divergence->position) divergence->undecided += history.ranks.size();
  }
}

// The sides by the records of one position; sets `*complete` to false if a record is lost.
std::vector<Side> SidesAt(const std::vector<History>& histories, uint64_t position,
                          bool* complete) {
  std::vector<Side> sides;
  SideByCall known;
  for (const History& history : histories) {
    if (history.entered() <= position) continue;
    const CallRecord* record = FindRecord(history, position);
    if (record == nullptr) {
      *complete = false;
    } else {
      AddToSide(history, record->args, record->entered_ns, &sides, &known);
    }
  }
  return sides;
}

// The first position to compare: that of the oldest record, but not before `agreed`.
uint64_t OldestRecord(const std::vector<History>& histories, uint64_t agreed) {
  uint64_t oldest = UINT64_MAX;
  for (const History& history : histories) {
    for (const Member* member : history.members) {
      if (!member->records.empty()) oldest = std::min(oldest, member->records.front().position);
    }
  }
  return std::max(oldest, agreed);
}

std::optional<Divergence> CompareRecords(const std::vector<History>& histories, uint64_t agreed) {
  uint64_t end = 0;
  for (const History& history : histories) end = std::max(end, history.entered());
  const uint64_t oldest = OldestRecord(histories, agreed);
  bool complete = oldest == agreed;
  // Damaged counters must not make this loop long: it ends with the newest record.
  uint64_t newest = 0;
  for (const History& history : histories) {
    for (const Member* member : history.members) {
      if (!member->records.empty()) newest = std::max(newest, member->records.back().position);
    }
  }
  if (oldest == UINT64_MAX || newest < oldest) return std::nullopt;
  end = std::min({end, newest + 1, oldest + (uint64_t{1} << 16)});
  for (uint64_t position = oldest; position < end; ++position) {
    Divergence divergence;
    divergence.sides = SidesAt(histories, position, &complete);
    if (divergence.sides.size() < 2) continue;
    divergence.position = position;
    divergence.may_be_earlier = !complete;
    FinishSides(histories, &divergence);
    return divergence;
  }
  return std::nullopt;
}

std::optional<uint64_t> SignatureAt(const History& history, uint64_t position) {
  const Member& member = *history.members.front();
  if (position == history.entered() && member.signature != 0) return member.signature;
  const auto checkpoint = std::find_if(member.checkpoints.begin(), member.checkpoints.end(),
                                       [&](const Checkpoint& c) { return c.position == position; });
  if (checkpoint == member.checkpoints.end()) return std::nullopt;
  return checkpoint->signature;
}

// The divergence if only checkpoints show it, and which ranks belong together.
Divergence LostDivergence(const std::vector<History>& histories,
                          const CheckpointComparison& comparison) {
  Divergence divergence;
  divergence.position = comparison.agreed;
  divergence.position_end = comparison.differ_at;
  std::map<uint64_t, Side> sides;
  for (const History& history : histories) {
    const std::optional<uint64_t> signature = SignatureAt(history, comparison.differ_at);
    if (!signature) continue;
    Side& side = sides[*signature];
    side.ranks.insert(side.ranks.end(), history.ranks.begin(), history.ranks.end());
  }
  for (auto& [signature, side] : sides) divergence.sides.push_back(std::move(side));
  FinishSides(histories, &divergence);
  return divergence;
}

bool HasAllRecords(const History& history, uint64_t begin, uint64_t end) {
  for (uint64_t position = begin; position < end; ++position) {
    if (FindRecord(history, position) == nullptr) return false;
  }
  return true;
}

// The position at which histories have different signatures now, if the records that would show the
// difference are lost, or 0.
uint64_t DifferNow(const std::vector<History>& histories, uint64_t agreed) {
  std::map<uint64_t, std::vector<const History*>> by_position;
  for (const History& history : histories) {
    if (history.members.front()->signature != 0) by_position[history.entered()].push_back(&history);
  }
  for (const auto& [position, here] : by_position) {
    if (here.size() < 2) continue;
    for (const History* history : here) {
      if (!HasAllRecords(*history, agreed, position)) return position;
    }
  }
  return 0;
}

// Aligns the two largest sides from shortly before the divergence on.
void AlignSides(const std::vector<History>& histories, uint64_t agreed, Divergence* divergence) {
  const auto calls_of = [&](const Side& side) {
    std::vector<HistoryCall> calls;
    const auto history = std::find_if(histories.begin(), histories.end(), [&](const History& h) {
      return std::find(h.ranks.begin(), h.ranks.end(), side.ranks.front()) != h.ranks.end();
    });
    const uint64_t begin =
        std::max(agreed, divergence->position - std::min<uint64_t>(divergence->position, 4));
    const uint64_t end = std::min(history->entered(), divergence->position + kAligned);
    for (uint64_t position = begin; position < end; ++position) {
      const CallRecord* record = FindRecord(*history, position);
      if (record == nullptr && position < divergence->position) {
        calls.clear();
        continue;
      }
      if (record == nullptr) break;
      calls.push_back({position, record->args});
    }
    return calls;
  };
  std::vector<HistoryCall> others = calls_of(divergence->sides[0]);
  std::vector<HistoryCall> culprits = calls_of(divergence->sides[1]);
  const auto skip_before = [](uint64_t position, std::vector<HistoryCall>* calls) {
    const auto at = std::find_if(calls->begin(), calls->end(),
                                 [&](const HistoryCall& c) { return c.position >= position; });
    calls->erase(calls->begin(), at);
  };
  if (others.empty() || culprits.empty()) return;
  const uint64_t begin = std::max(others.front().position, culprits.front().position);
  skip_before(begin, &others);
  skip_before(begin, &culprits);
  divergence->alignment = Align(others, culprits);
}

// Puts the side first that keeps its habit, if the ranks' own pasts decide a tie. As long as ranks
// are on their way, it is not known whether it is one.
void DecideByPast(const JobState& job, const Communicator& comm, Divergence* divergence) {
  std::vector<Side>& sides = divergence->sides;
  if (!HasNoMajority(*divergence) || divergence->undecided != 0) return;
  std::vector<const std::vector<int32_t>*> ranks;
  for (const Side& side : sides) ranks.push_back(&side.ranks);
  const std::optional<TieDecision> decision = DecideTie(job, comm, ranks, divergence->position);
  if (!decision) return;
  const auto kept = sides.begin() + static_cast<std::ptrdiff_t>(decision->kept);
  std::rotate(sides.begin(), kept, kept + 1);
  divergence->decided_by_past = true;
  divergence->habit = decision->habit;
  divergence->expected = decision->expected;
  divergence->expected_on = decision->expected_on;
}

// Ranks without a report may have joined either side.
size_t CountUnheard(const Communicator& comm) {
  const auto size = static_cast<size_t>(std::max(comm.size, 0));
  return size - std::min(size, comm.members.size());
}

std::optional<Divergence> FindFirst(const JobState& job, const Communicator& comm,
                                    const Ranks& left_out) {
  const std::vector<History> histories = GroupByHistory(comm, left_out);
  if (histories.size() < 2) return std::nullopt;
  CheckpointComparison comparison = CompareCheckpoints(histories);
  std::optional<Divergence> found = CompareRecords(histories, comparison.agreed);
  if (!found && comparison.differ_at == 0) {
    comparison.differ_at = DifferNow(histories, comparison.agreed);
  }
  if (comparison.differ_at != 0 && !(found && found->position < comparison.differ_at)) {
    return LostDivergence(histories, comparison);
  }
  if (!found) return found;
  found->undecided += CountUnheard(comm);
  DecideByPast(job, comm, &*found);
  AlignSides(histories, comparison.agreed, &*found);
  return found;
}

}  // namespace

std::vector<std::string> DifferingFields(const CallArgs& a, const CallArgs& b) {
  std::vector<std::string> fields;
  if (Canonical(a.op) != Canonical(b.op)) fields.push_back("operation");
  if (a.dtype != b.dtype) fields.push_back("dtype");
  if (a.count != b.count) fields.push_back("count");
  if (a.reduction != b.reduction) fields.push_back("reduction");
  if (a.peer != b.peer) fields.push_back("root");
  return fields;
}

uint64_t MessageBytes(const CallArgs& args) {
  constexpr uint8_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const uint64_t size = args.dtype < sizeof(kSizes) ? kSizes[args.dtype] : 1;
  return args.count * size;
}

bool HasNoMajority(const Divergence& divergence) {
  return divergence.sides[0].ranks.size() == divergence.sides[1].ranks.size();
}

std::vector<Divergence> FindDivergences(const JobState& job, const Communicator& comm) {
  std::vector<Divergence> found;
  if (!MayDiverge(comm)) return found;
  Ranks left_out;
  while (found.size() < kMostDivergences) {
    const std::optional<Divergence> divergence = FindFirst(job, comm, left_out);
    if (!divergence || divergence->sides.size() < 2) break;
    for (size_t i = 1; i < divergence->sides.size(); ++i) {
      left_out.insert(divergence->sides[i].ranks.begin(), divergence->sides[i].ranks.end());
    }
    found.push_back(*divergence);
  }
  return found;
}

bool MayDiverge(const Communicator& comm) {
  std::unordered_map<uint64_t, uint64_t> signature_at;  // position -> the first one seen
  bool differ = false;
  const auto compare = [&](uint64_t position, uint64_t signature) {
    const auto [at, is_new] = signature_at.emplace(position, signature);
    differ = differ || at->second != signature;
  };
  uint64_t entered = 0, signature = 0;  // of the member before: mostly the same
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.entered == 0) continue;
    if (member.signature == 0) return true;
    if (member.entered != entered || member.signature != signature) {
      compare(member.entered, member.signature);
      entered = member.entered;
      signature = member.signature;
      if (!member.checkpoints.empty()) {
        compare(member.checkpoints.back().position, member.checkpoints.back().signature);
      }
    }
    if (differ) return true;
  }
  return signature_at.size() > 1;
}

}  // namespace rollcall
