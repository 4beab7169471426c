// SPDX-License-Identifier: Apache-2.0
// Merges the history with the incidents in memory.
#include "daemon/history/incident_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

v1::Incident Opened(const std::string& id, int64_t seconds) {
  v1::Incident incident;
  incident.set_id(id);
  incident.mutable_opened_at()->set_seconds(seconds);
  return incident;
}

// Returns the window of all incidents in the history.
v1::ListIncidentsResponse Ask(std::vector<v1::Incident> all, const Window& window) {
  std::sort(all.begin(), all.end(), &ComesBefore);
  v1::ListIncidentsResponse response;
  response.set_total(static_cast<int32_t>(all.size()));
  for (int64_t i = window.offset; i < window.offset + window.limit; ++i) {
    if (i < static_cast<int64_t>(all.size())) *response.add_incidents() = all[size_t(i)];
  }
  return response;
}

// Spreads twelve incidents over memory and history in every way, and requests pages of several
// sizes.
TEST(MergeTest, IsTheSamePageWhereverTheIncidentsAre) {
  std::vector<v1::Incident> all;
  for (int i = 0; i < 12; ++i) all.push_back(Opened(absl::StrCat("job-", i), 100 - i / 2 * 2));
  std::sort(all.begin(), all.end(), &ComesBefore);
  for (uint32_t mask = 0; mask < 1u << all.size(); mask += 3) {
    std::vector<v1::Incident> memory, kept;
    for (size_t i = 0; i < all.size(); ++i) (mask >> i & 1 ? memory : kept).push_back(all[i]);
    for (int offset = 0; offset <= 13; offset += 2) {
      for (const int limit : {1, 3, 20}) {
        v1::ListIncidentsRequest request;
        request.set_offset(offset);
        request.set_limit(limit);
        const Window window = WindowFor(request, static_cast<int64_t>(memory.size()));
        const auto page = Merge(request, memory, window, Ask(kept, window));
        ASSERT_EQ(page.total(), 12);
        const int size = std::clamp(12 - offset, 0, limit);
        ASSERT_EQ(page.incidents_size(), size) << mask << " " << offset << " " << limit;
        for (int i = 0; i < size; ++i) {
          ASSERT_EQ(page.incidents(i).id(), all[size_t(offset + i)].id())
              << mask << " " << offset << " " << limit;
        }
      }
    }
  }
}

TEST(IsSelectedTest, UsesTheFirstVerdictLikeTheHistory) {
  v1::Incident incident = Opened("a-1", 1000);
  incident.set_job("a");
  incident.set_tenant("lab");
  incident.set_attempt(2);
  incident.add_verdicts()->set_cause("rank_died");
  incident.mutable_verdicts(0)->add_culprits()->set_host("node-1");
  incident.mutable_verdicts(0)->add_other_culprit_hosts("node-2000");
  incident.add_verdicts()->set_cause("missing_rank");
  v1::ListIncidentsRequest request;
  EXPECT_TRUE(IsSelected(incident, request));
  request.set_job("a");
  request.set_cause("rank_died");
  request.set_host("node-1");
  request.mutable_from()->set_seconds(1000);
  request.mutable_until()->set_seconds(1000);
  EXPECT_TRUE(IsSelected(incident, request));
  request.set_host("node-2000");
  EXPECT_TRUE(IsSelected(incident, request));
  request.set_host("node-1");
  const auto refuses = [&](auto change) {
    v1::ListIncidentsRequest other = request;
    change(&other);
    return !IsSelected(incident, other);
  };
  request.set_tenant("lab");
  request.set_attempt(2);
  EXPECT_TRUE(IsSelected(incident, request));
  EXPECT_TRUE(refuses([](auto* r) { r->set_job("b"); }));
  EXPECT_TRUE(refuses([](auto* r) { r->set_tenant("default"); }));
  EXPECT_TRUE(refuses([](auto* r) { r->set_attempt(0); }));
  EXPECT_TRUE(refuses([](auto* r) { r->set_cause("missing_rank"); }));
  EXPECT_TRUE(refuses([](auto* r) { r->set_host("node-2"); }));
  EXPECT_TRUE(refuses([](auto* r) { r->mutable_from()->set_seconds(1001); }));
  EXPECT_TRUE(refuses([](auto* r) { r->mutable_until()->set_seconds(999); }));
}

}  // namespace
}  // namespace rollcall
