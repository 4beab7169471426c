// SPDX-License-Identifier: Apache-2.0
// Verdicts for the tests of advice.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/advice.h"
#include "job_builder.h"

namespace rollcall {

inline Verdict Make(Cause cause, CallArgs call = AllReduce(), uint64_t position = 100) {
  Verdict v;
  v.cause = cause;
  v.communicator_size = 64;
  v.position = position;
  v.call = call;
  Culprit culprit;
  culprit.process = 3;
  culprit.rank = 3;
  culprit.pid = 4121;
  culprit.state = 'S';
  v.culprits = {culprit};
  for (int rank = 0; rank < 64; ++rank) {
    if (rank != 3) v.waiting_ranks.push_back(rank);
  }
  return v;
}

inline Verdict Mismatch(Cause cause, CallArgs theirs, CallArgs others, uint64_t position,
                        std::vector<std::string> fields) {
  Verdict v = Make(cause, others, position);
  v.culprits[0].call = theirs;
  v.mismatched_fields = std::move(fields);
  return v;
}

// Where the culprits and a waiting rank stand, by functions: "train.validate barrier.wait".
inline Verdict Standing(Verdict v, const std::string& culprits, const std::string& waiter = "") {
  v.places.resize(v.culprits.size());
  for (StackPlace& place : v.places) place.functions = absl::StrCat(" ", culprits, " ");
  if (!waiter.empty()) v.waiting_place.functions = absl::StrCat(" ", waiter, " ");
  return v;
}

inline Verdict MissingAt(const std::string& functions) {
  return Standing(Make(Cause::kMissingRank), functions, "train.step");
}

inline Verdict Meeting(CallArgs theirs, CallArgs others) {
  return Mismatch(Cause::kOperationMismatch, theirs, others, 100, {"operation"});
}

inline bool Has(const std::vector<Advice>& advice, const std::string& id) {
  return std::any_of(advice.begin(), advice.end(), [&](const Advice& a) { return a.id == id; });
}

}  // namespace rollcall
