// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/works.h"

#include <algorithm>

#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr int32_t kAsNamed = -1;

bool IsDone(const DumpedCall& call, const DumpedStatus& status) {
  if (call.completed) return true;
  return !call.is_p2p && call.retired && status.completed >= 0 &&
         call.collective_seq <= static_cast<uint64_t>(status.completed);
}

}  // namespace

std::vector<Work> MakeWorks(const std::vector<const DumpedCall*>& calls,
                            const DumpedStatus& status) {
  std::vector<Work> works;
  for (const DumpedCall* call : calls) {
    const uint64_t seq = call->is_p2p ? call->p2p_seq : call->collective_seq;
    const bool joins =
        !works.empty() && works.back().is_p2p == call->is_p2p &&
        (call->is_p2p ? works.back().last().p2p_seq : works.back().last().collective_seq) == seq &&
        !IsCoalescedEnd(works.back().last().name);
    if (!joins) works.emplace_back();
    works.back().calls.push_back(call);
    works.back().is_p2p = call->is_p2p;
    works.back().completed = IsDone(*call, status);
  }
  return works;
}

bool IsCoalesced(const Work& work) { return IsCoalescedEnd(work.last().name); }

ProgressWriter::ProgressWriter(const OperationTable& table, const DumpedCall* begun,
                               CommProgress* progress)
    : table_(table), begun_(begun), p_(progress) {
  p_->has_markers = true;
  p_->state = MemberState::kReady;
  p_->signature = segment::kSignatureSeed;
}

void ProgressWriter::Add(const Work& work) {
  if (work.is_p2p) {
    AddP2p(work, kAsNamed);
  } else {
    AddCollective(work);
  }
}

void ProgressWriter::AddSingle(const Work& work, int32_t peer) { AddP2p(work, peer); }

void ProgressWriter::Finish(const DumpedStatus& status) {
  const auto enqueued = static_cast<uint64_t>(std::max<int64_t>(status.enqueued, 0));
  if (p_->entered == 0 && enqueued != 0) {  // PyTorch's ring has overwritten all calls
    p_->entered = enqueued;
    p_->finished =
        std::min(enqueued, static_cast<uint64_t>(std::max<int64_t>(status.completed, 0)));
    p_->started = p_->finished;
    p_->signature = 0;
  }
  p_->returned = p_->entered;
  p_->p2p_returned = p_->p2p_entered;
  p_->started = std::max(p_->started, p_->finished);
  p_->p2p_started = std::max(p_->p2p_started, p_->p2p_finished);
}

void ProgressWriter::AddCollective(const Work& work) {
  const uint64_t seq = work.last().collective_seq;
  if (seq == 0 || seq <= p_->entered) return;
  const uint64_t position = seq - 1;
  const bool is_first = p_->entered == 0 && p_->finished == 0;
  if (position != p_->entered) {
    p_->records_lost += position - p_->entered;
    p_->signature = 0;
  }
  if (is_first) p_->finished = position;  // the overwritten calls had finished
  CallRecord record = Record(work.last(), table_.MakeArgs(work.calls));
  record.position = position;
  if (p_->signature != 0) p_->signature = SignatureAfter(record.args);
  p_->records.push_back(record);
  p_->entered = seq;
  if (Advance(work)) {
    p_->finished = seq;
  } else if (Begins(work)) {
    p_->started = seq;
    p_->waiting_since_ns = WaitingSince(work);
  }
}

void ProgressWriter::AddP2p(const Work& work, int32_t only_peer) {
  const uint16_t group = IsCoalesced(work) ? NextGroup() : uint16_t{0};
  uint64_t count = 0;
  for (const DumpedCall* call : work.calls) {
    const std::string operation = OperationName(call->name);
    const Op op = table_.FindOp(operation);
    if (OpKind(op) != CallKind::kP2p) continue;
    CallRecord record = Record(*call, table_.MakeArgs({call}));
    record.args.peer = only_peer >= 0 ? only_peer : ParsePeer(call->name);
    record.position = p_->entered;
    record.group = group;
    p_->records.push_back(record);
    ++count;
  }
  p_->p2p_entered += count;
  if (Advance(work)) {
    p_->p2p_finished = p_->p2p_entered;
  } else if (Begins(work)) {
    p_->p2p_started = p_->p2p_entered;
    p_->p2p_waiting_since_ns = WaitingSince(work);
  }
}

bool ProgressWriter::Advance(const Work& work) {
  if (open_ || !work.completed) return false;
  last_completed_ns_ = std::max(last_completed_ns_, work.last().completed_ns);
  return true;
}

bool ProgressWriter::Begins(const Work& work) {
  if (open_) return false;
  open_ = true;
  return begun_ == nullptr ? work.last().started : begun_ == &work.last();
}

int64_t ProgressWriter::WaitingSince(const Work& work) const {
  return std::max<int64_t>({work.last().created_ns, last_completed_ns_, 1});
}

CallRecord ProgressWriter::Record(const DumpedCall& call, const CallArgs& args) {
  CallRecord record;
  record.index = p_->records.size();
  record.args = args;
  record.entered_ns = std::max<int64_t>(call.created_ns, 1);
  record.returned_ns = record.entered_ns;
  record.thread = 1;
  return record;
}

uint64_t ProgressWriter::SignatureAfter(const CallArgs& args) const {
  return segment::NextSignature(p_->signature, static_cast<uint8_t>(Canonical(args.op)), args.dtype,
                                args.reduction, args.peer, args.count);
}

uint16_t ProgressWriter::NextGroup() {
  groups_ = groups_ == UINT16_MAX ? uint16_t{1} : static_cast<uint16_t>(groups_ + 1);
  return groups_;
}

}  // namespace rollcall
