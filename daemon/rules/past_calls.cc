// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/past_calls.h"

#include <algorithm>
#include <unordered_set>

#include "daemon/model/first_calls.h"
#include "daemon/model/progress.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr size_t kMostCalls = 1024;  // of a past

// Adds a member's records after the last one that is lost. Returns when they begin, 0 for the
// member's first call.
int64_t AddRecords(const Communicator& comm, const Member& member, std::vector<PastCall>* calls) {
  const size_t begin = calls->size();
  uint64_t next = 0;
  int64_t entered_ns = 0, complete_from_ns = 0;
  for (const CallRecord& record : member.records) {
    entered_ns = std::max(entered_ns, record.entered_ns - record.shift_ns);
    if (record.index != next) {
      calls->resize(begin);
      complete_from_ns = entered_ns;
    }
    next = record.index + 1;
    if (Happens(record)) calls->push_back({&comm, &record, entered_ns});
  }
  return complete_from_ns;
}

Past FindPast(const std::vector<PastMember>& members) {
  Past past;
  int64_t complete_from_ns = 0;
  for (const auto& [comm, member] : members) {
    complete_from_ns = std::max(complete_from_ns, AddRecords(*comm, *member, &past.calls));
  }
  std::vector<PastCall>& calls = past.calls;
  calls.erase(
      std::remove_if(calls.begin(), calls.end(),
                     [&](const PastCall& call) { return call.entered_ns < complete_from_ns; }),
      calls.end());
  std::stable_sort(calls.begin(), calls.end(), [](const PastCall& a, const PastCall& b) {
    return a.entered_ns < b.entered_ns;
  });
  past.is_whole = complete_from_ns == 0 && calls.size() <= kMostCalls;
  calls.erase(calls.begin(),
              calls.end() - static_cast<std::ptrdiff_t>(std::min(calls.size(), kMostCalls)));
  return past;
}

}  // namespace

std::vector<const Communicator*> CommunicatorsOf(const StuckCalls& calls,
                                                 const std::vector<size_t>& cycle) {
  std::vector<const Communicator*> comms;
  std::unordered_set<const Communicator*> known;
  for (const size_t i : cycle) {
    const Communicator* comm = calls[i]->communicator;
    if (known.insert(comm).second) comms.push_back(comm);
  }
  return comms;
}

std::vector<const CallRecord*> CallsUpTo(const Member& member, uint64_t position) {
  std::vector<const CallRecord*> calls;
  for (const CallRecord& record : member.records) {
    if (!TakesPosition(record) || record.position > position) continue;
    if (!calls.empty() && record.position != calls.back()->position + 1) calls.clear();
    calls.push_back(&record);
  }
  return calls;
}

std::vector<CallToken> TokensOf(const Past& past, bool with_count) {
  std::vector<CallToken> tokens;
  tokens.reserve(past.calls.size());
  for (const PastCall& call : past.calls) {
    CallArgs args = call.record->args;
    if (!with_count) args.count = 0;
    tokens.push_back(segment::Mix(call.communicator->id, SignatureOf(args)));
  }
  return tokens;
}

// A cycle may have thousands of communicators: looks at the members of each once, and not for each
// process that is asked for.
void Pasts::FindMembers() {
  for (const Communicator* comm : comms_) {
    for (const auto& [rank, member] : comm->members) {
      members_[member.process].push_back({comm, &member});
    }
  }
  comms_.clear();
}

const Past& Pasts::Of(int32_t process) {
  const auto [found, is_new] = pasts_.try_emplace(process);
  if (!is_new) return found->second;
  if (!comms_.empty()) FindMembers();
  const auto members = members_.find(process);
  if (members != members_.end()) found->second = FindPast(members->second);
  return found->second;
}

}  // namespace rollcall
