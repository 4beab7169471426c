// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/incident_id.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace rollcall {
namespace {

JobKey Key(const std::string& tenant, const std::string& job, int32_t attempt) {
  return {JobId{tenant, job}, attempt};
}

TEST(IncidentIdTest, OrdinaryNamesStayAsTheyAre) {
  EXPECT_EQ(IncidentIdPrefix(Key("default", "train", 0)), "train-");
  EXPECT_EQ(IncidentIdPrefix(Key("default", "train", 2)), "train.2-");
  EXPECT_EQ(IncidentIdPrefix(Key("team", "llama-3.1-70b", 2)), "team:llama-3.1-70b.2-");
  EXPECT_EQ(IncidentIdPrefix(Key("team", "run-12", 0)), "team:run-12-");
  EXPECT_EQ(IncidentIdPrefix(Key("default", "2026", 0)), "2026-");
}

TEST(IncidentIdTest, ANameThatLooksLikeAnAttemptOrATenantIsWrittenDifferently) {
  EXPECT_EQ(IncidentIdPrefix(Key("default", "llama.1", 0)), "llama..1-");
  EXPECT_EQ(IncidentIdPrefix(Key("default", "team:train", 0)), "team::train-");
}

// All names of up to four of these characters, of two tenants, in three attempts.
TEST(IncidentIdTest, GivesEachAttemptItsOwnPrefixThatNamesTheJob) {
  const std::string characters = "a1.:-";
  std::vector<std::string> names = {""};
  for (size_t from = 0, length = 0; length < 4; ++length) {
    const size_t end = names.size();
    for (; from < end; ++from) {
      for (const char c : characters) names.push_back(names[from] + c);
    }
  }
  std::map<std::string, JobKey> seen;
  for (const std::string& name : names) {
    for (const char* tenant : {"default", "a", "1."}) {
      for (const int32_t attempt : {0, 1, 11}) {
        const JobKey key = Key(tenant, name, attempt);
        const auto [at, is_new] = seen.emplace(IncidentIdPrefix(key), key);
        EXPECT_TRUE(is_new) << at->first << ": " << ToText(key) << ", " << ToText(at->second);
        const JobId read = JobOfIncidentId(IncidentIdPrefix(key) + "17");
        EXPECT_TRUE(read == key) << at->first << ": " << ToText(key) << ", " << ToText(read);
      }
    }
  }
}

}  // namespace
}  // namespace rollcall
