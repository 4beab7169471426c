// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/member_records.h"

#include "daemon/model/client_limits.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

constexpr size_t kMostCheckpoints = 256;

}  // namespace

size_t CheckpointsKept(size_t records) {
  if (records < kLeastRecords) return 0;
  return std::min(records * kCheckpointsOfRecord, kMostCheckpoints);
}

void AddCheckpoints(const std::vector<Checkpoint>& checkpoints, size_t kept, Member* member) {
  LazyVector<Checkpoint>* all = &member->checkpoints;
  const size_t skipped = checkpoints.size() - std::min(kept, checkpoints.size());
  for (size_t i = skipped; i < checkpoints.size(); ++i) {
    const Checkpoint& checkpoint = checkpoints[i];
    MakeRoom(kept * 2, all);
    Checkpoint* at = std::lower_bound(
        all->begin(), all->end(), checkpoint,
        [](const Checkpoint& a, const Checkpoint& b) { return a.position < b.position; });
    if (at != all->end() && at->position == checkpoint.position) {
      *at = checkpoint;
    } else {
      all->insert(at, checkpoint);
    }
  }
  Shrink(kept, all);
}

std::shared_ptr<const MessageCounts> LimitMessages(std::shared_ptr<const MessageCounts> counts,
                                                   size_t kept) {
  constexpr size_t kOfRecord = sizeof(CallRecord) / sizeof(PeerMessages);
  constexpr size_t kLeastMessages = 8;
  const size_t most = std::max(kept * kOfRecord, kLeastMessages);
  if (counts == nullptr || counts->by_peer.size() <= most) return counts;
  auto less = std::make_shared<MessageCounts>(*counts);
  less->lost = true;
  std::vector<PeerMessages>* all = &less->by_peer;
  all->erase(std::remove_if(all->begin(), all->end(),
                            [](const PeerMessages& with) {
                              return with.sends_awaited == 0 && with.receives_awaited == 0;
                            }),
             all->end());
  if (all->size() > most) all->resize(most);
  all->shrink_to_fit();
  return less;
}

bool CountTraffic(const CallRecord& record, Member* member) {
  if (OpKind(record.args.op) != CallKind::kP2p || !Happens(record)) return true;
  LazyVector<PeerTraffic>* all = &member->traffic;
  PeerTraffic* at =
      std::lower_bound(all->begin(), all->end(), record.args.peer,
                       [](const PeerTraffic& t, int32_t peer) { return t.peer < peer; });
  if (at == all->end() || at->peer != record.args.peer) {
    if (all->size() >= limits::kPeersOfMember) return false;
    const auto index = at - all->begin();
    all->insert(at, {record.args.peer, 0, 0});
    at = all->begin() + index;
  }
  ++(IsSendSide(record.args.op) ? at->sends : at->receives);
  return true;
}

bool Insert(const CallRecord& record, LazyVector<CallRecord>* records, size_t* at_index) {
  if (records->empty() || records->back().index < record.index) {
    *at_index = records->size();
    records->push_back(record);
    return true;
  }
  CallRecord* const at =
      std::lower_bound(records->begin(), records->end(), record,
                       [](const CallRecord& a, const CallRecord& b) { return a.index < b.index; });
  *at_index = static_cast<size_t>(at - records->begin());
  if (at->index == record.index) {
    *at = record;
    return false;
  }
  records->insert(at, record);
  return true;
}

}  // namespace rollcall
