// SPDX-License-Identifier: Apache-2.0
#include "net/guarded_callers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rollcall {
namespace {

TlsRandom Random(uint8_t first) {
  TlsRandom random = {};
  random[0] = first;
  return random;
}

std::vector<uint8_t> Hello(uint8_t first) {
  std::vector<uint8_t> bytes = {22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3};
  const TlsRandom random = Random(first);
  bytes.insert(bytes.end(), random.begin(), random.end());
  bytes.insert(bytes.end(), 200, 0);
  return bytes;
}

class GuardedCallersTest : public testing::Test {
 protected:
  void Read(int fd, uint64_t inode, const std::vector<uint8_t>& bytes) {
    callers_.Read(fd, inode, bytes.data(), bytes.size());
  }
  GuardedCallers callers_;
};

TEST_F(GuardedCallersTest, AConnectionIsFoundByTheNumberOfItsHello) {
  const auto known = callers_.Add(5, 50, true);
  const auto other = callers_.Add(6, 60, true);
  EXPECT_TRUE(callers_.AwaitsHellos());
  Read(5, 50, Hello(1));
  Read(6, 60, Hello(2));
  EXPECT_FALSE(callers_.AwaitsHellos());
  EXPECT_EQ(callers_.Find(Random(1)), known);
  EXPECT_EQ(callers_.Find(Random(2)), other);
  EXPECT_EQ(callers_.Find(Random(3)), nullptr);
  callers_.Admit(5, 50);
  EXPECT_TRUE(known->is_known.load());
  EXPECT_FALSE(other->is_known.load());
}

TEST_F(GuardedCallersTest, AHelloMayComeInPieces) {
  const auto caller = callers_.Add(5, 50, true);
  for (const uint8_t byte : Hello(1)) Read(5, 50, {byte});
  EXPECT_EQ(callers_.Find(Random(1)), caller);
}

TEST_F(GuardedCallersTest, OtherBytesFindNothing) {
  callers_.Add(5, 50, true);
  std::vector<uint8_t> bytes = Hello(1);
  bytes[5] = 2;
  Read(5, 50, bytes);
  EXPECT_EQ(callers_.Find(Random(1)), nullptr);
  EXPECT_FALSE(callers_.AwaitsHellos());
}

TEST_F(GuardedCallersTest, ADescriptorThatIsGivenOutAgainBelongsToAnother) {
  const auto former = callers_.Add(5, 50, true);
  Read(5, 50, Hello(1));
  const auto next = callers_.Add(5, 51, true);
  EXPECT_EQ(callers_.Find(Random(1)), nullptr) << "nothing is kept of a closed connection";
  callers_.Admit(5, 50);
  EXPECT_FALSE(next->is_known.load());
  Read(5, 52, Hello(2));  // a socket that this port did not accept
  EXPECT_EQ(callers_.Find(Random(2)), nullptr);
  EXPECT_FALSE(callers_.AwaitsHellos());
}

TEST_F(GuardedCallersTest, AConnectionThatEndsIsForgottenAlsoInTheMiddleOfItsHello) {
  callers_.Add(5, 50, true);
  callers_.Add(6, 60, true);
  Read(5, 50, {22, 3});
  callers_.End(5, 51);
  Read(6, 60, Hello(2));
  EXPECT_TRUE(callers_.AwaitsHellos()) << "another socket has ended";
  callers_.End(5, 50);
  EXPECT_FALSE(callers_.AwaitsHellos());
  callers_.End(6, 60);
  EXPECT_EQ(callers_.Find(Random(2)), nullptr);
}

TEST_F(GuardedCallersTest, TellsWhetherACallHasBegun) {
  const auto caller = callers_.Add(5, 50, true);
  EXPECT_FALSE(callers_.HasCalled(5, 50));
  caller->has_called.store(true);
  EXPECT_TRUE(callers_.HasCalled(5, 50));
  EXPECT_FALSE(callers_.HasCalled(5, 51));
}

TEST_F(GuardedCallersTest, WithoutTlsThereIsNoHello) {
  const auto caller = callers_.Add(5, 50, false);
  EXPECT_FALSE(callers_.AwaitsHellos());
  callers_.Admit(5, 50);
  EXPECT_TRUE(caller->is_known.load());
}

}  // namespace
}  // namespace rollcall
