// SPDX-License-Identifier: Apache-2.0
// Where the fields lie that every diagnosis reads of each process and communicator of a job. Their
// number is limited by memory: at 100,000 ranks each line of the cache costs milliseconds.
#include "daemon/model/job_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>

namespace rollcall {
namespace {

constexpr std::ptrdiff_t kCacheLine = 64;

struct Field {
  const void* at;
  size_t size;
};

// From the first byte of the fields to their last one.
std::ptrdiff_t Span(std::initializer_list<Field> fields) {
  const char *first = nullptr, *last = nullptr;
  for (const Field& field : fields) {
    const auto* at = static_cast<const char*>(field.at);
    if (first == nullptr || at < first) first = at;
    if (last == nullptr || at + field.size > last) last = at + field.size;
  }
  return last - first;
}

#define FIELD(object, name) \
  Field { &(object).name, sizeof((object).name) }

TEST(JobStateTest, WhatRulesReadOfEachProcessIsOneLineOfTheCache) {
  const Process p;
  EXPECT_LE(
      Span({FIELD(p, global_rank), FIELD(p, world_size), FIELD(p, has_segment), FIELD(p, has_met),
            FIELD(p, holds_several), FIELD(p, agent), FIELD(p, waits_outside_since_ns),
            FIELD(p, liveness), FIELD(p, state), FIELD(p, blocked)}),
      kCacheLine);
}

TEST(JobStateTest, WhatRulesReadOfEachWaitingProcessIsFourLinesOfTheCache) {
  const Process p;
  EXPECT_LE(
      Span({FIELD(p, global_rank), FIELD(p, liveness), FIELD(p, blocked), FIELD(p, error),
            FIELD(p, step), FIELD(p, wait_channel), FIELD(p, lost_threads), FIELD(p, left_out)}),
      4 * kCacheLine);
}

TEST(JobStateTest, WhatADiagnosisReadsOfEachCommunicatorIsOneLineOfTheCache) {
  const Communicator c;
  // With its key in the table of communicators it is half a line, and nearly never in two.
  EXPECT_LE(Span({FIELD(c, version), FIELD(c, may_wait), FIELD(c, may_diverge), FIELD(c, uses_p2p),
                  FIELD(c, arrivals.calls)}),
            kCacheLine / 2 - 8);
}

}  // namespace
}  // namespace rollcall
