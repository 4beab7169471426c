#include "daemon/rules/divergence.h"

#include <algorithm>
#include <map>
#include <utility>

#include "daemon/rules/progress.h"

namespace rollcall {
namespace {

// Ranks with one history. Their records, put together, may reach further back
// than those of one of them; the first of them stands for all.
struct History {
  std::vector<int32_t> ranks;
  std::vector<const Member*> members;
  uint64_t entered() const { return members.front()->entered; }
};

std::vector<History> GroupByHistory(const Communicator& comm) {
  std::map<std::pair<uint64_t, uint64_t>, History> known;
  std::vector<History> result;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank) || member.entered == 0) continue;
    if (member.signature == 0) {  // not known: nothing proves it equal to another
      result.push_back({{rank}, {&member}});
      continue;
    }
    History& history = known[{member.entered, member.signature}];
    history.ranks.push_back(rank);
    history.members.push_back(&member);
  }
  for (auto& [key, history] : known) result.push_back(std::move(history));
  return result;
}

const CallRecord* RecordOf(const History& history, uint64_t position) {
  // Two are enough: rings lose records together, being written together.
  const size_t looked_at = std::min<size_t>(history.members.size(), 2);
  for (size_t i = 0; i < looked_at; ++i) {
    const CallRecord* record = FindCollective(*history.members[i], position);
    if (record != nullptr) return record;
  }
  return nullptr;
}

struct Agreement {
  uint64_t agreed = 0;     // all are known to agree on the calls before this
  uint64_t differ_at = 0;  // 0: no checkpoint differs; else the first that does
};

Agreement CompareCheckpoints(const std::vector<History>& histories) {
  std::map<uint64_t, std::vector<uint64_t>> by_position;
  for (const History& history : histories) {
    for (const auto& [position, signature] : history.members.front()->checkpoints) {
      if (position <= history.entered()) by_position[position].push_back(signature);
    }
  }
  Agreement agreement;
  for (const auto& [position, signatures] : by_position) {
    const bool equal = std::all_of(signatures.begin(), signatures.end(),
                                   [&](uint64_t s) { return s == signatures.front(); });
    if (!equal) {
      if (position > 0) agreement.differ_at = position;
      break;
    }
    if (signatures.size() == histories.size()) agreement.agreed = position;
  }
  return agreement;
}

bool SameCall(const CallArgs& a, const CallArgs& b) { return DifferingFields(a, b).empty(); }

void AddToSide(const History& history, const CallArgs& call, int64_t since_ns,
               std::vector<Side>* sides) {
  auto side = std::find_if(sides->begin(), sides->end(),
                           [&](const Side& s) { return SameCall(s.call, call); });
  if (side == sides->end()) side = sides->insert(sides->end(), Side{{}, call, since_ns});
  side->ranks.insert(side->ranks.end(), history.ranks.begin(), history.ranks.end());
  side->since_ns = std::min(side->since_ns, since_ns);
}

void FinishSides(const std::vector<History>& histories, Divergence* divergence) {
  std::stable_sort(divergence->sides.begin(), divergence->sides.end(),
                   [](const Side& a, const Side& b) { return a.ranks.size() > b.ranks.size(); });
  for (Side& side : divergence->sides) std::sort(side.ranks.begin(), side.ranks.end());
  for (const History& history : histories) {
    if (history.entered() <= divergence->position) divergence->undecided += history.ranks.size();
  }
}

// What the records of one position say; sets `*complete` to false if one is lost.
std::vector<Side> SidesAt(const std::vector<History>& histories, uint64_t position,
                          bool* complete) {
  std::vector<Side> sides;
  for (const History& history : histories) {
    if (history.entered() <= position) continue;
    const CallRecord* record = RecordOf(history, position);
    if (record == nullptr) {
      *complete = false;
    } else {
      AddToSide(history, record->args, record->entered_ns, &sides);
    }
  }
  return sides;
}

// No record before `end` is worth looking at below this.
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
  // Hostile counters must not make this loop long: there are no more positions
  // with records than records.
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

// Only the checkpoints tell that the ranks parted, and who from whom.
Divergence LostDivergence(const std::vector<History>& histories, const Agreement& agreement) {
  Divergence divergence;
  divergence.position = agreement.agreed;
  divergence.position_end = agreement.differ_at;
  std::map<uint64_t, Side> sides;
  for (const History& history : histories) {
    const Member& member = *history.members.front();
    const auto checkpoint = member.checkpoints.find(agreement.differ_at);
    if (checkpoint == member.checkpoints.end()) continue;
    Side& side = sides[checkpoint->second];
    side.ranks.insert(side.ranks.end(), history.ranks.begin(), history.ranks.end());
  }
  for (auto& [signature, side] : sides) divergence.sides.push_back(std::move(side));
  FinishSides(histories, &divergence);
  return divergence;
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

std::optional<Divergence> FindDivergence(const Communicator& comm) {
  const std::vector<History> histories = GroupByHistory(comm);
  if (histories.size() < 2) return std::nullopt;
  const Agreement agreement = CompareCheckpoints(histories);
  std::optional<Divergence> found = CompareRecords(histories, agreement.agreed);
  if (agreement.differ_at == 0) return found;
  if (found && found->position < agreement.differ_at) return found;
  return LostDivergence(histories, agreement);
}

}  // namespace rollcall
