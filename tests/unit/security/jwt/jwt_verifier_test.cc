// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/jwt_verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "eventually.h"
#include "test_keys.h"

namespace rollcall {
namespace {

using ::testing::HasSubstr;

std::string Jwt(const TestKey& key) {
  const std::string header = absl::StrCat(R"({"alg":"ES256","kid":")", key.id(), "\"}");
  const std::string message = absl::StrCat(
      ToBase64Url(header), ".",
      ToBase64Url(R"({"aud":"rollcall","exp":2000,"sub":"system:serviceaccount:ml:viewer"})"));
  return absl::StrCat(message, ".", ToBase64Url(key.Sign(message)));
}

std::vector<Grant> Grants() { return {*ParseGrant("viewer=sub:system:serviceaccount:ml:*")}; }

TEST(JwtVerifierTest, ATokenBecomesAnIdentity) {
  const AllThreadsEnd all_threads_end;
  const TestKey key = TestKey::Ec("k");
  const auto source = KeySource::Watch(
      [text = KeySetText({key.Json()})]() -> absl::StatusOr<std::string> { return text; });
  const JwtVerifier verifier(source.get(), {"rollcall", ""}, Grants());
  const auto viewer = verifier.Verify(Jwt(key), 1000);
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  EXPECT_TRUE(viewer->Has(Role::kViewer));
  EXPECT_EQ(verifier.Verify(Jwt(key), 3000).status().code(), absl::StatusCode::kUnauthenticated);
  const auto unknown = verifier.Verify(Jwt(TestKey::Ec("new")), 1000);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("try again"));
}

TEST(JwtVerifierTest, WithoutKeysItIsNotTheCallersFault) {
  const AllThreadsEnd all_threads_end;
  const auto source = KeySource::Fetch(
      []() -> absl::StatusOr<std::string> { return absl::UnavailableError("no network"); });
  const JwtVerifier verifier(source.get(), {"rollcall", ""}, Grants());
  EXPECT_EQ(verifier.Verify(Jwt(TestKey::Ec("k")), 1000).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace rollcall
