// SPDX-License-Identifier: Apache-2.0
#include "net/http2_guard.h"

#include <gtest/gtest.h>

#include <string>

#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPing = 6,
              kGoAway = 7, kWindow = 8, kContinuation = 9;
constexpr int kAck = 1, kEndStream = 1, kEndHeaders = 4, kPadded = 8;

std::string Frame(int type, int flags, const std::string& content = "", char stream = 1) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(content.size() >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  return out + std::string(3, '\0') + stream + content;
}

// A message of gRPC with so many bytes.
std::string Message(size_t size) {
  std::string out(1, '\0');
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(size >> shift);
  return out + std::string(size, 'm');
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string kStart = kPreface + Frame(kSettings, 0) + Frame(kSettings, kAck);

// A header of one field with a value of this size.
std::string Literal(int size) {
  return std::string("\x41\x7f") + static_cast<char>((size - 127) % 128 + 128) +
         static_cast<char>((size - 127) / 128) + std::string(static_cast<size_t>(size), 'v');
}

class Http2GuardTest : public testing::Test {
 protected:
  bool Read(const std::string& bytes, int64_t now_ns = kSecond) {
    return guard_.Read(bytes.data(), bytes.size(), now_ns);
  }
  // How many of these frames pass.
  int Count(const std::string& frame, int most, int64_t now_ns = kSecond) {
    int passed = 0;
    while (passed < most && Read(frame, now_ns)) ++passed;
    return passed;
  }

  Http2Guard guard_;
};

TEST_F(Http2GuardTest, AnOrdinaryCallPassesInWhateverPiecesItComes) {
  std::string all = kStart;
  for (int i = 0; i < 20; ++i) {
    all += Frame(kHeaders, kEndHeaders, Literal(300)) + Frame(kWindow, 0, "1234") +
           Frame(kData, 0, std::string(16384, 'd')) + Frame(kPing, 0, "12345678");
  }
  all += Frame(kGoAway, 0, "12345678");
  EXPECT_TRUE(Read(all));
  for (const size_t piece : {1, 7, 24, 9000}) {
    Http2Guard guard;
    for (size_t at = 0; at < all.size(); at += piece) {
      const std::string part = all.substr(at, piece);
      ASSERT_TRUE(guard.Read(part.data(), part.size(), kSecond)) << guard.reason();
    }
  }
}

TEST_F(Http2GuardTest, AHeaderInSeveralFramesEndsTheConnection) {
  ASSERT_TRUE(Read(kStart));
  EXPECT_FALSE(Read(Frame(kHeaders, 0, "\x82")));
  EXPECT_STREQ(guard_.reason(), "a header in several frames");
  EXPECT_FALSE(Read(""));  // for ever
  guard_ = Http2Guard();
  ASSERT_TRUE(Read(kStart));
  EXPECT_FALSE(Read(Frame(kContinuation, kEndHeaders, "\x82")));
}

// 0xbe is one field: what the client put into the table last, up to 4 KiB.
TEST_F(Http2GuardTest, AHeaderOfManyFieldsEndsTheConnection) {
  ASSERT_TRUE(Read(kStart));
  EXPECT_TRUE(Read(Frame(kHeaders, kEndHeaders, std::string(32, '\xbe'))));
  EXPECT_FALSE(Read(Frame(kHeaders, kEndHeaders, std::string(33, '\xbe'))));
  EXPECT_STREQ(guard_.reason(), "a header of too many fields");
}

TEST_F(Http2GuardTest, APaddedHeaderAndOneWithAPriorityEndTheConnection) {
  for (const int flag : {8, 32}) {
    guard_ = Http2Guard();
    ASSERT_TRUE(Read(kStart));
    EXPECT_FALSE(Read(Frame(kHeaders, kEndHeaders | flag, std::string(20, '\x83'))));
  }
}

int CountFields(const std::string& header) {
  HeaderFields fields;
  for (size_t at = 0; at < header.size();) {
    at += fields.Skip(header.size() - at);
    if (at < header.size()) fields.Read(static_cast<uint8_t>(header[at++]));
  }
  return fields.count();
}

TEST(HeaderFieldsTest, EachFormOfAFieldIsOne) {
  const std::string x126(126, 'x'), x200(200, 'x');
  EXPECT_EQ(CountFields(""), 0);
  EXPECT_EQ(CountFields("\x82\x87\x84"), 3);      // in the table
  EXPECT_EQ(CountFields("\xff\x80\x01\x82"), 2);  // far in the table
  EXPECT_EQ(CountFields("\x41\x03"
                        "abc\x82"),
            2);  // a value
  EXPECT_EQ(CountFields(std::string("\x40\x01"
                                    "a\x00\x82",
                                    5)),
            2);  // a name, and a value of no bytes
  EXPECT_EQ(CountFields("\x7f\x81\x01\x01"
                        "a\x82"),
            2);  // a value of a name far in the table
  EXPECT_EQ(CountFields("\x04\x83"
                        "abc\x1f\x02\x01"
                        "a\x82"),
            3);                                   // not into the table; Huffman's code
  EXPECT_EQ(CountFields("\x3f\xe1\x1f\x82"), 2);  // a new size of the table
  EXPECT_EQ(CountFields("\x41\x7e" + x126 + "\x82"), 2);
  EXPECT_EQ(CountFields("\x41\x7f\x49" + x200 + "\x82"), 2);  // a long value
}

TEST_F(Http2GuardTest, AFrameThatIsTooLongEndsTheConnectionByItsHead) {
  ASSERT_TRUE(Read(kStart));
  EXPECT_FALSE(Read(Frame(kData, 0, std::string(16385, 'd')).substr(0, 9)));
}

TEST_F(Http2GuardTest, KnowsWhatHasComeOfMessagesThatAreNotComplete) {
  ASSERT_TRUE(Read(kStart));
  const std::string message = Message(40000);
  ASSERT_TRUE(Read(Frame(kData, 0, message.substr(0, 3))));  // a part of its length
  EXPECT_EQ(guard_.held(), 0u);
  ASSERT_TRUE(Read(Frame(kData, 0, message.substr(3, 10002))));
  EXPECT_EQ(guard_.held(), 10000u);
  ASSERT_TRUE(Read(Frame(kData, 0, Message(7) + message.substr(0, 105), 3)));
  EXPECT_EQ(guard_.held(), 10100u);
  ASSERT_TRUE(Read(Frame(kData, 0, message.substr(10005, 16000))));
  ASSERT_TRUE(Read(Frame(kData, 0, message.substr(26005) + Message(0) + Message(9))));
  EXPECT_EQ(guard_.held(), 100u) << "of the other stream";
  ASSERT_TRUE(Read(Frame(kReset, 0, "1234", 3)));
  EXPECT_EQ(guard_.held(), 0u);
}

TEST_F(Http2GuardTest, TheEndOfAStreamEndsItsMessage) {
  ASSERT_TRUE(Read(kStart + Frame(kData, kEndStream, Message(50).substr(0, 20))));
  EXPECT_EQ(guard_.held(), 0u);
  ASSERT_TRUE(Read(Frame(kData, 0, Message(50).substr(0, 20))));
  EXPECT_EQ(guard_.held(), 15u);
  ASSERT_TRUE(Read(Frame(kData, kEndStream)));
  EXPECT_EQ(guard_.held(), 0u);
}

TEST_F(Http2GuardTest, PaddedDataEndTheConnection) {
  ASSERT_TRUE(Read(kStart));
  EXPECT_FALSE(Read(Frame(kData, kPadded, "\1d ")));
}

TEST_F(Http2GuardTest, TooManyUnfinishedMessagesEndTheConnection) {
  Http2Limits limits;
  limits.messages = 3;
  guard_ = Http2Guard(limits);
  ASSERT_TRUE(Read(kStart));
  for (const char stream : {1, 3, 5, 5}) {
    ASSERT_TRUE(Read(Frame(kData, 0, Message(9).substr(0, 1), stream)));
  }
  EXPECT_FALSE(Read(Frame(kData, 0, Message(0), 7)));
}

struct Flood {
  const char* name;
  int type;
  int flags;
  const char* content;
  int at_once, per_second;
};

constexpr Flood kFloods[] = {
    {"calls", kHeaders, kEndHeaders, "\x82", 300, 200},
    {"resets", kReset, 0, "1234", 300, 100},
    {"pings", kPing, 0, "12345678", 500, 100},
    {"answers_to_pings", kPing, kAck, "12345678", 500, 100},
    {"settings", kSettings, 0, "", 98, 20},
    {"windows", kWindow, 0, "1234", 20000, 5000},
    {"empty_data", kData, 0, "", 2000, 400},
    {"priorities", kPriority, 0, "12345", 2000, 400},
    {"unknown", 200, 0, "", 2000, 400},
};

class FloodTest : public Http2GuardTest, public testing::WithParamInterface<Flood> {};

TEST_P(FloodTest, EndsTheConnectionAndItsRateDoesNot) {
  const Flood& flood = GetParam();
  const std::string frame = Frame(flood.type, flood.flags, flood.content);
  ASSERT_TRUE(Read(kStart));
  EXPECT_EQ(Count(frame, flood.at_once), flood.at_once);
  for (int second = 2; second < 10; ++second) {
    EXPECT_EQ(Count(frame, flood.per_second, second * kSecond), flood.per_second);
  }
  EXPECT_FALSE(Read(frame, 9 * kSecond));
}

INSTANTIATE_TEST_SUITE_P(Kinds, FloodTest, testing::ValuesIn(kFloods),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace rollcall
