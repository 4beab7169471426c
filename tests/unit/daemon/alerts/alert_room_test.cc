// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_room.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace rollcall {
namespace {

// Tenant, uid of the culprit (-1 if unknown), job; the oldest first.
using Waiting = std::vector<std::tuple<std::string, int, std::string>>;

size_t Find(const Waiting& waiting) {
  std::vector<v1::Incident> incidents;
  for (const auto& [tenant, uid, job] : waiting) {
    v1::Incident& incident = incidents.emplace_back();
    incident.set_tenant(tenant);
    incident.set_job(job);
    if (uid >= 0) {
      incident.add_verdicts()->add_culprits()->set_uid(static_cast<uint32_t>(uid));
    }
  }
  std::vector<const v1::Incident*> all;
  for (const v1::Incident& incident : incidents) all.push_back(&incident);
  return FindAlertThatMakesRoom(all);
}

TEST(AlertRoomTest, TheOldestOfOneJobMakesRoom) {
  EXPECT_EQ(Find({{"a", 1000, "x"}, {"a", 1000, "x"}}), 0u);
}

TEST(AlertRoomTest, TheHeaviestUserMakesRoomWhateverItsJobsAreCalled) {
  EXPECT_EQ(Find({{"a", 1000, "x"}, {"a", 1000, "x"}, {"b", 7, "1"}, {"b", 7, "2"}, {"b", 7, "3"}}),
            2u)
      << "the tenant";
  EXPECT_EQ(Find({{"a", 1000, "x"}, {"a", 1000, "x"}, {"a", 7, "1"}, {"a", 7, "2"}, {"a", 7, "3"}}),
            2u)
      << "the user";
  EXPECT_EQ(Find({{"a", 7, "1"}, {"a", 7, "2"}, {"a", 7, "2"}}), 1u) << "the job";
  EXPECT_EQ(Find({{"a", 7, "x"}, {"a", -1, "1"}, {"a", -1, "2"}}), 1u) << "of unknown users";
}

}  // namespace
}  // namespace rollcall
