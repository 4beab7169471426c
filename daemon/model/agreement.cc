// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/agreement.h"

#include "daemon/model/progress.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

// Positions that are kept. Agents of the largest jobs report few signatures.
constexpr size_t kFew = 8;
constexpr size_t kMany = 64;

}  // namespace

bool Agreement::Add(uint64_t position, uint64_t signature) {
  if (position == 0 || signature == 0) return true;
  if (seen_.empty()) seen_.resize(kFew);
  Checkpoint& seen = seen_[position % seen_.size()];
  if (seen.position == position) return seen.signature == signature;
  if (seen.position < position) seen = {position, signature};
  return true;
}

bool Agreement::AddRecords(uint64_t position, uint64_t signature,
                           const std::vector<CallRecord>& records, uint64_t new_position,
                           uint64_t new_signature) {
  if (signature == 0 || new_signature == 0 || records.empty()) return true;
  std::vector<Checkpoint> steps;
  for (const CallRecord& record : records) {
    if (!TakesPosition(record) || record.position < position) continue;
    if (record.position != position || position == new_position) return true;  // a gap: no proof
    const CallArgs& args = record.args;
    signature = segment::NextSignature(signature, static_cast<uint8_t>(Canonical(args.op)),
                                       args.dtype, args.reduction, args.peer, args.count);
    steps.push_back({++position, signature});
  }
  if (position != new_position || signature != new_signature) return true;
  if (seen_.size() < kMany && steps.size() > 1) Grow();
  bool agrees = true;
  for (const Checkpoint& step : steps) agrees = Add(step.position, step.signature) && agrees;
  return agrees;
}

void Agreement::Grow() {
  const std::vector<Checkpoint> before = std::move(seen_);
  seen_.assign(kMany, {});
  for (const Checkpoint& seen : before) Add(seen.position, seen.signature);
}

}  // namespace rollcall
