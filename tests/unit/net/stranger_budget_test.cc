// SPDX-License-Identifier: Apache-2.0
#include "net/stranger_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/durations.h"
#include "net/http2_guard.h"

namespace rollcall {
namespace {

constexpr char kTooMuch[] = "more than its share of what unknown callers may send";
constexpr int kHeaders = 1, kPing = 6, kEndHeaders = 4;

std::string Frame(int type, int flags, const std::string& content) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(content.size() >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  return out + std::string("\0\0\0\1", 4) + content;
}

constexpr int64_t kMost = StrangerBudget::kMostCalls;  // shared calls that have not been given back

const std::string kCall = Frame(kHeaders, kEndHeaders, "\x82");

// So many strangers.
class StrangersTest : public testing::Test {
 protected:
  Http2Guard* Connect() {
    guards_.push_back(std::make_unique<Http2Guard>(Http2Limits(), &budget_));
    const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    EXPECT_TRUE(guards_.back()->Read(preface.data(), preface.size(), kSecond));
    return guards_.back().get();
  }
  // How many of these frames pass, `most` at most.
  static int64_t Send(Http2Guard* guard, const std::string& frame, int64_t most,
                      int64_t now_ns = kSecond) {
    int64_t passed = 0;
    while (passed < most && guard->Read(frame.data(), frame.size(), now_ns)) ++passed;
    return passed;
  }
  static FrameRate Together(FrameKind kind) {
    return StrangerBudget::kTogether.at(static_cast<size_t>(kind));
  }
  static FrameRate Own(FrameKind kind) {
    return StrangerBudget::kOwn.at(static_cast<size_t>(kind));
  }

  StrangerBudget budget_;
  std::vector<std::unique_ptr<Http2Guard>> guards_;
};

TEST_F(StrangersTest, HundredsOfConnectionsHaveOneSum) {
  constexpr int kConnections = 64;
  int64_t passed = 0;
  for (int i = 0; i < kConnections; ++i) passed += Send(Connect(), kCall, 1000);
  EXPECT_EQ(passed, Together(FrameKind::kStreams).at_once +
                        kConnections * Own(FrameKind::kStreams).at_once);
  EXPECT_STREQ(guards_.back()->reason(), kTooMuch);
}

TEST_F(StrangersTest, ANewcomerCallsBesideAFlood) {
  for (int i = 0; i < 64; ++i) Send(Connect(), kCall, 1000);
  Http2Guard* const newcomer = Connect();
  EXPECT_EQ(Send(newcomer, kCall, 1), 1);
  newcomer->Know(Http2Guard::Shares::kNothing);
  EXPECT_EQ(Send(newcomer, kCall, 100), 100) << "a known caller shares nothing";
}

TEST_F(StrangersTest, AKnownCallerWithoutTlsSharesTheCallsOnly) {
  Http2Guard* const known = Connect();
  known->Know(Http2Guard::Shares::kCalls);
  for (int i = 0; i < 64; ++i) {
    Http2Guard* const stranger = Connect();
    Send(stranger, kCall, 1000);
    Send(Connect(), Frame(kPing, 0, "12345678"), 1000);
  }
  EXPECT_EQ(Send(known, Frame(kPing, 0, "12345678"), 400), 400);
  EXPECT_EQ(Send(known, kCall, 100), Own(FrameKind::kStreams).at_once);
}

TEST_F(StrangersTest, CallsCountUntilTheyAreGone) {
  for (int i = 0; i < 64; ++i) Send(Connect(), kCall, 1000);
  const int64_t own = Own(FrameKind::kStreams).at_once;
  EXPECT_EQ(Send(Connect(), kCall, kMost, 2 * kSecond), own) << "the daemon still has the others";
  for (const auto& guard : guards_) guard->GiveBackCalls();
  EXPECT_EQ(Send(Connect(), kCall, kMost, 2 * kSecond), kMost);
}

TEST_F(StrangersTest, ACallerWhoBecomesKnownGivesBackItsCalls) {
  Http2Guard* const known = Connect();
  EXPECT_EQ(Send(known, kCall, kMost), kMost);
  known->Know(Http2Guard::Shares::kNothing);
  EXPECT_EQ(Send(Connect(), kCall, kMost, 2 * kSecond), kMost);
}

}  // namespace
}  // namespace rollcall
