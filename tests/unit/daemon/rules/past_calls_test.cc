// SPDX-License-Identifier: Apache-2.0
// The order of a rank's calls on several communicators.
#include "daemon/rules/past_calls.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "job_builder.h"

namespace rollcall {
namespace {

constexpr uint64_t kPair = kDp + 1;

// A later tick brings a better estimate of the host's clock: its times are earlier.
TEST(PastCallsTest, KeepTheirOrderWhenTheEstimateOfTheClockChanges) {
  constexpr int64_t kShift = -300'000;
  JobBuilder job(2);
  job.AddCommunicator(kPair, "pair", {0, 1});
  for (int step = 0; step < 20; ++step) {
    for (const uint64_t id : {kPair, kDp}) {
      job.On(id);
      job.Finish({0}, 1, AllReduce(), At(1) + step * 200'000 + (id == kDp ? 100'000 : 0));
      // The first tick ends between the two calls of step 10.
      if (step > 10 || (step == 10 && id == kDp)) {
        CallRecord& record = job.member(0).records.back();
        record.entered_ns += kShift;
        record.shift_ns = kShift;
      }
    }
  }
  Pasts pasts({&job.state.communicators.at(kDp), &job.state.communicators.at(kPair)});
  const std::vector<PastCall>& calls = pasts.Of(0).calls;
  ASSERT_EQ(calls.size(), 40u);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].communicator->id, i % 2 == 0 ? kPair : kDp) << i;
  }
}

}  // namespace
}  // namespace rollcall
