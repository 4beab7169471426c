// SPDX-License-Identifier: Apache-2.0
#include "security/webhook_signature.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

// What the specification's Python library (standardwebhooks 1.0.0) makes of the same input.
constexpr char kKey[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr char kSigned[] = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

TEST(WebhookSignatureTest, IsThatOfTheSpecificationsLibrary) {
  EXPECT_EQ(
      WebhookSignature(kKey, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
      kSigned);
}

TEST(WebhookSignatureTest, DependsOnKeyIdTimeAndBody) {
  const std::string of = WebhookSignature("key", "job-1/1", 100, "body");
  EXPECT_NE(WebhookSignature("other", "job-1/1", 100, "body"), of);
  EXPECT_NE(WebhookSignature("key", "job-1/2", 100, "body"), of);
  EXPECT_NE(WebhookSignature("key", "job-1/1", 101, "body"), of);
  EXPECT_NE(WebhookSignature("key", "job-1/1", 100, "BODY"), of);
}

}  // namespace
}  // namespace rollcall
