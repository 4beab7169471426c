// SPDX-License-Identifier: Apache-2.0
#include "net/http_senders.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "eventually.h"
#include "net/http_workers.h"

namespace rollcall {
namespace {

HttpCaller CallerAt(const std::string& address) {
  HttpCaller caller;
  caller.peer = "ipv4:" + address + ":4711";
  return caller;
}

std::string RequestWith(const std::string& field) {
  return "GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\n" + field + "\r\n\r\n";
}

const HttpCaller kProxy = CallerAt("10.0.0.1");

std::string CredentialWith(const std::string& field) {
  return HttpSenders::CredentialOf(RequestWith(field), kProxy);
}

TEST(HttpSendersTest, UsersBehindOneAddressAreToldApartOnceTheyAreKnown) {
  HttpSenders senders;
  const std::string anna = CredentialWith("Authorization: Bearer a"),
                    ben = CredentialWith("cookie: session=b");
  EXPECT_EQ(senders.OwnerOf(anna, kProxy), "ipv4:10.0.0.1");
  senders.Learn(anna, "anna");
  senders.Learn(ben, "ben");
  EXPECT_EQ(senders.OwnerOf(anna, kProxy), "user:anna");
  EXPECT_EQ(senders.OwnerOf(ben, kProxy), "user:ben");
  EXPECT_EQ(senders.OwnerOf(anna, CallerAt("10.0.0.2")), "user:anna") << "wherever she is";
  EXPECT_EQ(senders.OwnerOf(CredentialWith("Authorization: Bearer c"), kProxy), "ipv4:10.0.0.1");
}

TEST(HttpSendersTest, WithoutCredentialsTheAddressDecides) {
  HttpSenders senders;
  const std::string none = CredentialWith("Accept: */*");
  EXPECT_EQ(none, "");
  senders.Learn(none, "anybody");
  EXPECT_EQ(senders.OwnerOf(none, kProxy), "ipv4:10.0.0.1");
}

TEST(HttpSendersTest, ACertificateIsACredential) {
  HttpCaller caller = kProxy;
  caller.certificate_pem = "x";
  const std::string credential = HttpSenders::CredentialOf(RequestWith("Accept: */*"), caller);
  HttpSenders senders;
  senders.Learn(credential, "viewer");
  EXPECT_EQ(senders.OwnerOf(credential, caller), "user:viewer");
}

TEST(HttpSendersTest, ARefusedCredentialIsForgotten) {
  HttpSenders senders;
  const std::string anna = CredentialWith("Authorization: Bearer a");
  senders.Learn(anna, "anna");
  senders.Learn(anna, "");
  EXPECT_EQ(senders.OwnerOf(anna, kProxy), "ipv4:10.0.0.1");
}

TEST(HttpSendersTest, AUserMakesNobodyElseForgotten) {
  HttpSenders senders;
  const std::string anna = CredentialWith("Authorization: Bearer a");
  senders.Learn(anna, "anna");
  for (int i = 0; i < 10'000; ++i) {
    senders.Learn(CredentialWith("Cookie: n=" + std::to_string(i)), "ben");
  }
  EXPECT_EQ(senders.OwnerOf(anna, kProxy), "user:anna");
  EXPECT_EQ(senders.OwnerOf(CredentialWith("Cookie: n=9999"), kProxy), "user:ben");
  EXPECT_EQ(senders.OwnerOf(CredentialWith("Cookie: n=1"), kProxy), "ipv4:10.0.0.1");
}

HttpWorkers::Task TaskOf(uint64_t id, const std::string& token) {
  return {id, RequestWith("Authorization: Bearer " + token), kProxy};
}

TEST(HttpWorkersTest, AUserIsServedBesideAnotherWhoFloodsBehindTheSameProxy) {
  constexpr int kThreads = 4;
  std::atomic<int> answered{0}, slow{0};
  std::atomic<uint64_t> newest{0};
  absl::Notification end;
  const auto answer = [&](const std::string& request, const HttpCaller&) {
    HttpReply reply;
    reply.viewer.user = absl::StrContains(request, "anna") ? "anna" : "ben";
    const bool is_slow = reply.viewer.user == "ben" && answered > 1;
    if (is_slow) ++slow;
    if (is_slow) end.WaitForNotification();
    return reply;
  };
  HttpWorkers workers(kThreads, answer, [&](const HttpWorkers::Finished& finished) {
    newest = finished.id;
    ++answered;
  });
  workers.Start();
  workers.Post(TaskOf(1, "anna"));
  workers.Post(TaskOf(2, "ben"));
  ASSERT_TRUE(Eventually([&answered] { return answered == 2; })) << "both are known now";
  for (uint64_t id = 3; id < 40; ++id) workers.Post(TaskOf(id, "ben"));
  ASSERT_TRUE(Eventually([&slow] { return slow == kThreads - 1; }));
  workers.Post(TaskOf(40, "anna"));
  EXPECT_TRUE(Eventually([&newest] { return newest == 40; }));
  EXPECT_EQ(slow, kThreads - 1);
  end.Notify();
  workers.Stop();
}

}  // namespace
}  // namespace rollcall
