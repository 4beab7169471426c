// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/usual_durations.h"

#include <algorithm>
#include <vector>

#include "daemon/model/progress.h"

namespace rollcall {
namespace {

constexpr size_t kUsualKept = 32;  // kinds of calls, of a communicator
constexpr int64_t kLongCallNs = 200'000'000;

void Learn(const CallRecord& record, int64_t duration_ns, std::vector<UsualDuration>* usual) {
  const uint8_t size_class = SizeClass(record.args.count);
  auto at = std::find_if(usual->begin(), usual->end(), [&](const UsualDuration& u) {
    return u.op == record.args.op && u.size_class == size_class;
  });
  if (at == usual->end()) {
    if (usual->size() >= kUsualKept) return;
    usual->push_back({record.args.op, size_class, 0, 0});
    at = usual->end() - 1;
  }
  if (at->seen < UINT32_MAX) ++at->seen;
  at->longest_ns = std::max(duration_ns, at->longest_ns - at->longest_ns / 64);
}

}  // namespace

void LearnFrom(const Member& before, int32_t rank, uint64_t finished, int64_t now_ns,
               Communicator* comm) {
  if (before.waiting_since_ns == 0 || finished <= before.finished) return;
  const int64_t duration = now_ns - before.waiting_since_ns;
  // Short waits are frequent and alike on all ranks, so those of rank 0 are enough.
  if (duration < 0 || (duration < kLongCallNs && rank != 0)) return;
  const CallRecord* record = FindCollective(before, before.Awaits());
  if (record != nullptr) Learn(*record, duration, &comm->usual);
}

}  // namespace rollcall
