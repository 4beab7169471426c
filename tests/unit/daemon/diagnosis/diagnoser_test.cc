// SPDX-License-Identifier: Apache-2.0
// The diagnoser of a job, which looks at what has changed only.
#include <gtest/gtest.h>

#include <random>

#include "daemon/diagnosis/diagnose.h"
#include "reporting_ranks.h"

namespace rollcall {
namespace {

// An incremental diagnosis must give the same verdicts as a full one.
TEST(DiagnoserTest, AgreesWithAFreshDiagnoserAfterEveryChange) {
  std::mt19937 random(7);
  Ranks ranks(6);
  ranks.ReportAll();
  Diagnoser diagnoser;
  size_t found = 0;
  for (int step = 0; step < 3000; ++step) {
    const int rank = static_cast<int>(random() % 6);
    const int64_t now = kStart + step * kSecond / 4;
    if (random() % 400 == 0) {
      ranks.Call(rank, now, 9);
    } else if (random() % 3 != 0) {
      ranks.Call(rank, now);
    }
    CommProgress& p = ranks.of(rank);
    if (random() % 50 == 0 && p.entered > 0) {
      p.finished = p.entered - 1;
      p.waiting_since_ns = now;
    } else if (random() % 3 == 0) {
      p.finished = p.entered;
      p.waiting_since_ns = 0;
    }
    ranks.Report(rank, now);
    const auto incremental = diagnoser.Run(ranks.model.state(), now, Limits());
    const auto full = Diagnose(ranks.model.state(), now, Limits());
    ASSERT_EQ(incremental.size(), full.size()) << step;
    for (size_t i = 0; i < full.size(); ++i) {
      ASSERT_EQ(incremental[i].summary, full[i].summary) << step;
      ASSERT_EQ(incremental[i].evidence, full[i].evidence) << step;
    }
    found += full.size();
  }
  EXPECT_GT(found, 100u);
}

}  // namespace
}  // namespace rollcall
