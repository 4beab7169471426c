// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/tenant_of.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

struct Case {
  const char* behaviour;
  std::string claimed;
  std::vector<std::string> allowed;
  std::optional<std::string> tenant;
};

const Case kCases[] = {
    {"any claim where all are allowed", "team-a", {"*"}, "team-a"},
    {"no claim where all are allowed", "", {"*"}, "default"},
    {"no claim where one is allowed", "", {"team-a"}, "team-a"},
    {"a claim that is allowed", "team-b", {"team-a", "team-b"}, "team-b"},
    {"a claim that is not allowed", "team-c", {"team-a", "team-b"}, std::nullopt},
    {"a claim beside the only allowed one", "team-b", {"team-a"}, std::nullopt},
    {"no claim where several are allowed", "", {"team-a", "team-b"}, std::nullopt},
    {"no claim where several and the default are allowed", "", {"team-a", "default"}, "default"},
    {"nothing is allowed", "", {}, std::nullopt},
    {"a claim of all tenants", "*", {"*"}, std::nullopt},
    {"a name that looks like tenant and job", "team/train", {"*"}, std::nullopt},
    {"a name that no certificate can hold", "team+a", {"*"}, std::nullopt},
    {"a name that looks like tenant and incident", "team:1", {"*"}, std::nullopt},
    {"a name with a blank", "team a", {"*"}, std::nullopt},
    {"the longest name", std::string(255, 'x'), {"*"}, std::string(255, 'x')},
    {"a name that is too long", std::string(256, 'x'), {"*"}, std::nullopt},
};

TEST(TenantOfTest, TakesTheClaimAsFarAsTheIdentityPermits) {
  for (const Case& c : kCases) EXPECT_EQ(TenantOf(c.claimed, c.allowed), c.tenant) << c.behaviour;
}

}  // namespace
}  // namespace rollcall
