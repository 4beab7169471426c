// SPDX-License-Identifier: Apache-2.0
// What the audit says of requests that act.
#include "daemon/queries/audit_words.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fake_queries.h"

namespace rollcall {
namespace {

class AuditWordsTest : public testing::Test {
 protected:
  template <typename Request>
  std::string ObjectOf(const Request& request) const {
    return InWords(queries_, request).object;
  }

  const FakeQueries queries_;
};

TEST_F(AuditWordsTest, NameTheTenantAndAFewHostsOfALook) {
  v1::LookRequest request;
  request.set_job("train.py");
  EXPECT_EQ(InWords(queries_, request).action, "diagnose");
  EXPECT_EQ(ObjectOf(request), "job train.py, which is not recorded, of any tenant");
  request.set_tenant("team");
  for (int i = 0; i < 10; ++i) request.add_hosts(absl::StrCat("n", i));
  EXPECT_EQ(ObjectOf(request),
            "job team/train.py on n0, n1, n2, n3, n4, n5, n6, n7 and 2 more, "
            "which is not recorded");
}

TEST_F(AuditWordsTest, NameTheRanksWhoseStacksAreTaken) {
  v1::TakeStacksRequest request;
  request.set_job("train");
  EXPECT_EQ(InWords(queries_, request).action, "take stacks");
  EXPECT_EQ(ObjectOf(request), "job team/train attempt 2, all ranks");
  request.add_ranks(0);
  request.add_ranks(3);
  request.add_hosts("n1");
  EXPECT_EQ(ObjectOf(request), "job team/train attempt 2, ranks 0,3 on n1");
}

TEST_F(AuditWordsTest, NameWhatASilenceCoversAndForHowLong) {
  v1::AddSilenceRequest request;
  request.mutable_silence()->set_job("train");
  request.mutable_silence()->set_cause("straggler");
  request.set_seconds(5400);
  EXPECT_EQ(InWords(queries_, request).action, "silence");
  EXPECT_EQ(ObjectOf(request), "job train, cause straggler, for 1h30m");
  v1::EndSilenceRequest end;
  end.set_id("s1");
  EXPECT_EQ(InWords(queries_, end).action, "end silence");
  EXPECT_EQ(ObjectOf(end), "s1");
}

TEST_F(AuditWordsTest, HideASecretInANote) {
  v1::IncidentActionRequest request;
  request.set_id("i1");
  request.set_action("take back");
  EXPECT_EQ(InWords(queries_, request).action, "take back");
  EXPECT_EQ(ObjectOf(request), "incident i1");
  request.set_text("password=hunter22");
  EXPECT_FALSE(absl::StrContains(ObjectOf(request), "hunter22"));
}

}  // namespace
}  // namespace rollcall
