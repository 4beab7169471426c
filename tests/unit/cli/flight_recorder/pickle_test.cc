// SPDX-License-Identifier: Apache-2.0
// Pickles, good and hostile.
#include "cli/flight_recorder/pickle.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pickle_writer.h"

namespace rollcall {
namespace {

using nlohmann::json;

std::string Bytes(std::initializer_list<int> codes) {
  std::string bytes;
  for (const int code : codes) bytes += static_cast<char>(code);
  return bytes;
}

TEST(PickleTest, PlainDataComesOutAsItWentIn) {
  const json value = {{"a", {1, -1, 1 << 20, int64_t{1} << 40, nullptr, true, false}},
                      {"b", {{"c", "text"}, {"d", json::array()}, {"e", json::object()}}}};
  const absl::StatusOr<json> read = ReadPickle(PickleWriter::Write(value));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, value);
}

// What pickle.dumps((1, 2.5, "x", b"y", [None, True], {3: -4}), protocol) gives
// for protocols 2 and 4.
TEST(PickleTest, PythonsOwnProtocolsAreRead) {
  const std::string two =
      Bytes({0x80, 2, '(', 'K', 1,   'G',  0x40, 4,    0,    0,   0,   0,   0,    0,   'X',
             1,    0, 0,   0,   'x', 'q',  0,    ']',  'q',  2,   '(', 'N', 0x88, 'e', '}',
             'q',  3, 'K', 3,   'J', 0xfc, 0xff, 0xff, 0xff, 's', 't', 'q', 4,    '.'});
  EXPECT_EQ(*ReadPickle(two), json({1, 2.5, "x", {nullptr, true}, {{"3", -4}}}));
  const std::string four =
      Bytes({0x80, 4,    0x95, 20,  0,    0,   0, 0,    0,    0,   0,    '(', 'K',
             1,    0x8c, 1,    'x', 0x94, 'h', 0, 0x85, 0x94, 't', 0x94, '.'});
  EXPECT_EQ(*ReadPickle(four), json({1, "x", json::array({"x"})}));
}

TEST(PickleTest, OpcodesThatRunCodeAreRefusedByNameAndPlace) {
  const std::pair<int, const char*> opcodes[] = {
      {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},  {'b', "BUILD"},
      {'i', "INST"},   {'o', "OBJ"},           {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"},
      {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},   {0x84, "EXT4"},
  };
  for (const auto& [code, name] : opcodes) {
    const absl::StatusOr<json> read = ReadPickle(Bytes({0x80, 2, ']', code, 'o', 's', '\n', '.'}));
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_TRUE(absl::StrContains(read.status().message(), absl::StrCat("byte 3: ", name)))
        << read.status();
  }
}

// cos\nsystem\n(S'...'\ntR. : the classic.
TEST(PickleTest, TheClassicExploitIsRefused) {
  EXPECT_FALSE(ReadPickle("cos\nsystem\n(S'touch /tmp/rollcall-was-here'\ntR.").ok());
  EXPECT_FALSE(std::filesystem::exists("/tmp/rollcall-was-here"));
}

// Each level holds the one before it ten times: 10^30 values in 300 bytes.
TEST(PickleTest, RepetitionDoesNotMultiply) {
  std::string bomb = Bytes({0x80, 2, ']', 'q', 0, '0'});
  for (int level = 1; level < 31; ++level) {
    bomb += Bytes({']', '('});
    for (int i = 0; i < 10; ++i) bomb += Bytes({'h', level - 1});
    bomb += Bytes({'e', 'q', level, '0'});
  }
  bomb += Bytes({'h', 30, '.'});
  const absl::StatusOr<json> read = ReadPickle(bomb);
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(absl::StrContains(read.status().message(), "more values")) << read.status();
}

// A list of 10 lists, and so on: the text is there 10^4 times, in 66 KB.
TEST(PickleTest, RepeatedTextsDoNotMultiply) {
  constexpr int kBytes = 1 << 16;
  std::string bomb = Bytes({0x80, 2, 'X', 0, 0, kBytes >> 16, 0}) + std::string(kBytes, 'x');
  bomb += Bytes({'q', 0, '0'});
  for (int level = 1; level < 5; ++level) {
    bomb += '(';
    for (int i = 0; i < 10; ++i) bomb += Bytes({'h', level - 1});
    bomb += Bytes({'l', 'q', level, '0'});
  }
  bomb += Bytes({'h', 4, '.'});
  const absl::StatusOr<json> read = ReadPickle(bomb);
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(absl::StrContains(read.status().message(), "more text")) << read.status();
}

// PyTorch writes a frame once and refers to it from each call that has it.
TEST(PickleTest, SharedFramesAreRead) {
  const json frame = {{"name", "forward"}, {"filename", std::string(120, 'x')}, {"line", 57}};
  std::string pickle = PickleWriter::Write(frame);
  pickle.pop_back();  // the end
  pickle += Bytes({'q', 0xff, '0', '('});
  for (int call = 0; call < 1000; ++call) {
    pickle += '(';
    for (int i = 0; i < 40; ++i) pickle += Bytes({'h', 0xff});
    pickle += 'l';
  }
  pickle += "l.";
  const absl::StatusOr<json> read = ReadPickle(pickle);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->at(999).at(39), frame);
}

TEST(PickleTest, AListThatHoldsItselfIsTooDeep) {
  EXPECT_FALSE(ReadPickle(Bytes({0x80, 2, ']', 'q', 0, 'h', 0, 'a', '.'})).ok());
}

TEST(PickleTest, SizesBeyondTheFileAreNoAllocation) {
  const absl::StatusOr<json> read =
      ReadPickle(Bytes({0x80, 4, 0x8d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 'x', '.'}));
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(absl::StrContains(read.status().message(), "byte 2")) << read.status();
}

}  // namespace
}  // namespace rollcall
