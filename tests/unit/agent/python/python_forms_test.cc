// SPDX-License-Identifier: Apache-2.0
// Decodes CPython's formats of lines, strings and offsets from bytes. The tables come from the
// named interpreters, for the functions in the comments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include "agent/python/interleave.h"
#include "agent/python/python_strings.h"
#include "agent/python/sampler.h"
#include "interpose/python/python_layout.h"
#include "interpose/python/python_lines.h"

namespace rollcall {
namespace {

int Line(PythonLines form, const std::string& table, int first_line, int64_t offset) {
  return PythonLine(form, reinterpret_cast<const uint8_t*>(table.data()), table.size(), first_line,
                    offset);
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

TEST(PythonLineTest, ReadsPairsOfDifferences) {
  // Two bytes of code for each line, then a loop back to the previous line.
  const std::string table = Bytes({0, 1, 4, 1, 6, 255});
  EXPECT_EQ(Line(PythonLines::kLnotab, table, 10, 0), 11);
  EXPECT_EQ(Line(PythonLines::kLnotab, table, 10, 3), 11);
  EXPECT_EQ(Line(PythonLines::kLnotab, table, 10, 4), 12);
  EXPECT_EQ(Line(PythonLines::kLnotab, table, 10, 10), 11);
  EXPECT_EQ(Line(PythonLines::kLnotab, table, 10, 4000), 11);
}

TEST(PythonLineTest, ReadsRangesWithHoles) {
  const std::string table = Bytes({4, 1, 6, 128, 2, 3});
  EXPECT_EQ(Line(PythonLines::kRanges, table, 10, 0), 11);
  EXPECT_EQ(Line(PythonLines::kRanges, table, 10, 4), 0);  // no line
  EXPECT_EQ(Line(PythonLines::kRanges, table, 10, 10), 14);
  EXPECT_EQ(Line(PythonLines::kRanges, table, 10, 12), 0);  // beyond the end
}

TEST(PythonLineTest, ReadsEntriesOfEveryLength) {
  // 0x80 | code << 3 | length - 1
  // clang-format off
  const std::string table = Bytes({
      0x80 | 0 << 3 | 0, 0x12,                                  // one unit, same line, short form
      0x80 | 11 << 3 | 1, 0x04, 0x08,                           // two units, the next line
      0x80 | 13 << 3 | 0, 0x05,                                 // one unit, -2 lines, no columns
      0x80 | 14 << 3 | 0, 0x40 | 0x20, 0x01, 0x00, 0x01, 0x02,  // +48 lines: 96 >> 1
      0x80 | 15 << 3 | 7,                                       // eight units without a line
  });
  // clang-format on
  EXPECT_EQ(Line(PythonLines::kLocations, table, 10, 0), 10);
  EXPECT_EQ(Line(PythonLines::kLocations, table, 10, 2), 11);
  EXPECT_EQ(Line(PythonLines::kLocations, table, 10, 4), 11);
  EXPECT_EQ(Line(PythonLines::kLocations, table, 10, 6), 9);
  EXPECT_EQ(Line(PythonLines::kLocations, table, 10, 8), 57);
  EXPECT_EQ(Line(PythonLines::kLocations, table, 10, 10), 0);
}

TEST(PythonLineTest, ReturnsTheFirstLineBeforeTheFirstInstruction) {
  EXPECT_EQ(Line(PythonLines::kLocations, "", 7, -2), 7);
}

TEST(PythonLineTest, SurvivesAnyBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string table(random() % 40, '\0');
    for (char& byte : table) byte = static_cast<char>(random());
    for (const PythonLines form :
         {PythonLines::kLnotab, PythonLines::kRanges, PythonLines::kLocations}) {
      Line(form, table, static_cast<int>(random()), static_cast<int64_t>(random()) - 5);
    }
  }
}

TEST(PythonTextTest, DecodesTheStateOfAString) {
  const auto ascii = ParsePythonStringForm(1 << 2 | 1 << 5 | 1 << 6);  // up to 3.13
  ASSERT_TRUE(ascii.has_value());
  EXPECT_TRUE(ascii->ascii);
  EXPECT_EQ(ascii->bytes_per_character, 1u);
  const auto wide = ParsePythonStringForm(2 << 16 | 1 << 19);  // 3.14
  ASSERT_TRUE(wide.has_value());
  EXPECT_FALSE(wide->ascii);
  EXPECT_EQ(wide->bytes_per_character, 2u);
  EXPECT_FALSE(ParsePythonStringForm(0).has_value());
}

TEST(PythonTextTest, ConvertsEveryWidthToUtf8WithoutControlCharacters) {
  EXPECT_EQ(PythonStringToUtf8(Bytes({'a', 0xfc}), 1), "a\xc3\xbc");
  EXPECT_EQ(PythonStringToUtf8(Bytes({0x22, 0x4e}), 2), "\xe4\xb8\xa2");
  EXPECT_EQ(PythonStringToUtf8(Bytes({0x00, 0xf6, 0x01, 0x00}), 4), "\xf0\x9f\x98\x80");
  for (const std::string& bad : {Bytes({0x00, 0xd8}), Bytes({0x1b, 0x00})}) {
    EXPECT_EQ(PythonStringToUtf8(bad, 2), "\xef\xbf\xbd");
  }
}

TEST(PythonLayoutTest, HasTheLayoutsOfVersionsThatPublishNoOffsets) {
  for (int minor = 8; minor <= 12; ++minor) {
    ASSERT_NE(FindPythonLayout(minor), nullptr);
    EXPECT_EQ(FindPythonLayout(minor)->minor, minor);
  }
  EXPECT_EQ(FindPythonLayout(7), nullptr);
  EXPECT_EQ(FindPythonLayout(15), nullptr);
}

TEST(PythonLayoutTest, TakesNoOtherMemoryForPublishedOffsets) {
  std::mt19937_64 random(1);
  uint64_t words[kDebugOffsetWords] = {};
  EXPECT_FALSE(PythonLayoutFromDebugOffsets(words).has_value());
  for (int i = 0; i < 1000; ++i) {
    for (uint64_t& word : words) word = random();
    // The cookie and the version are right, all other bytes are damaged.
    memcpy(words, "xdebugpy", 8);
    words[1] = 0x030d0000;
    EXPECT_FALSE(PythonLayoutFromDebugOffsets(words).has_value());
  }
}

// All offsets are 40, in objects of 128 bytes: plausible. A process may publish any of them
// wrongly.
TEST(PythonLayoutTest, TakesNoOffsetBeyondTheCopyOfAnObject) {
  constexpr int kBytesSize = 65, kBytesData = 66, kStringLength = 69, kFrameSize = 28;
  uint64_t right[kDebugOffsetWords];
  std::fill(std::begin(right), std::end(right), 40);
  memcpy(right, "xdebugpy", 8);
  right[1] = 0x030d0000;
  right[kFrameSize] = right[kBytesData] = right[70] = 128;  // 70: the text of a string
  ASSERT_TRUE(PythonLayoutFromDebugOffsets(right).has_value());
  for (const auto& [word, wrong] : {std::pair<int, uint64_t>{kBytesSize, 121},
                                    {kBytesSize, 0x7fffffff},
                                    {kBytesData, 7},
                                    {kStringLength, 0x10000},
                                    {kFrameSize, 4}}) {
    uint64_t words[kDebugOffsetWords];
    std::copy(std::begin(right), std::end(right), words);
    words[word] = wrong;
    EXPECT_FALSE(PythonLayoutFromDebugOffsets(words).has_value()) << word << " " << wrong;
  }
}

// Memory in which every read succeeds and many of the values are addresses.
class DamagedMemory : public ProcessMemory {
 public:
  explicit DamagedMemory(uint64_t seed) : random_(seed) {}
  bool Read(uint64_t address, void* to, size_t size) override {
    if (address % 64 == 63) return false;
    auto* bytes = static_cast<uint8_t*>(to);
    for (size_t at = 0; at + 8 <= size; at += 8) {
      const uint64_t choice = random_();
      const uint64_t word = choice % 4 == 0   ? 0x1000 + choice % 65536
                            : choice % 4 == 1 ? kType
                            : choice % 4 == 2 ? choice % 256
                                              : choice;
      memcpy(bytes + at, &word, 8);
    }
    return true;
  }
  static constexpr uint64_t kType = 0x7000;

 private:
  std::mt19937_64 random_;
};

TEST(PythonSamplerTest, EndsInDamagedMemory) {
  for (int minor = 8; minor <= 12; ++minor) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      DamagedMemory memory(seed);
      PythonInterpreter interpreter;
      interpreter.layout = *FindPythonLayout(minor);
      interpreter.runtime = 0x1000;
      interpreter.code_type = interpreter.string_type = interpreter.bytes_type =
          DamagedMemory::kType;
      PythonSampler python(interpreter, &memory);
      python.ListThreads();
      RawSample sample;
      sample.threads.resize(4);
      for (RawThread& thread : sample.threads) {
        thread.tid = static_cast<pid_t>(seed);
        thread.is_main = true;
        python.ReadFrames(&thread);
        python.KeepFrames(&thread);
      }
      python.ReadCode(&sample);
      for (const auto& [address, code] : sample.python.code) EXPECT_LE(code.name.size(), 2048u);
    }
  }
}

Frame Native(const std::string& function, const std::string& module) {
  Frame frame;
  frame.function = function;
  frame.module = module;
  return frame;
}

std::vector<std::string> Names(const std::vector<Frame>& frames) {
  std::vector<std::string> names;
  for (const Frame& frame : frames) names.push_back(frame.function);
  return names;
}

class InterleaveTest : public testing::Test {
 protected:
  InterleaveTest() {
    python_.module = "/usr/bin/python3.11";
    python_.minor = 11;
    for (const auto& [address, name] :
         {std::make_pair(1, "inner"), std::make_pair(2, "middle"), std::make_pair(3, "outer")}) {
      python_.code[static_cast<uint64_t>(address)].name = name;
    }
  }

  std::vector<std::string> Interleave(const std::vector<uint64_t>& codes,
                                      const std::vector<std::string>& native) {
    RawThread thread;
    for (const uint64_t code : codes) thread.python_frames.push_back({code, 0});
    std::vector<Frame> frames;
    for (const std::string& name : native) {
      frames.push_back(Native(name, name[0] == '_' ? python_.module : "libc.so"));
    }
    return Names(InterleavePython(std::move(frames), thread, python_, &note_));
  }

  PythonSample python_;
  std::string note_;
};

using Names_ = std::vector<std::string>;

TEST_F(InterleaveTest, InsertsEachGroupAtItsEvaluator) {
  EXPECT_EQ(Interleave({1, 2, 0, 3, 0}, {"read", "_PyEval_EvalFrameDefault", "qsort",
                                         "_PyEval_EvalFrameDefault.cold", "main"}),
            (Names_{"read", "inner", "middle", "qsort", "outer", "main"}));
  EXPECT_EQ(note_, "");
}

TEST_F(InterleaveTest, AppendsFramesBeyondTheEndOfTheCopy) {
  EXPECT_EQ(Interleave({1, 0, 2, 0, 3, 0}, {"read", "_PyEval_EvalFrameDefault"}),
            (Names_{"read", "inner", "middle", "outer"}));
  EXPECT_EQ(note_, "the native frames between the outer Python frames are missing");
}

TEST_F(InterleaveTest, KeepsAnEvaluatorWithoutAPythonFrame) {
  EXPECT_EQ(Interleave({1, 0}, {"_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault"}),
            (Names_{"inner", "_PyEval_EvalFrameDefault"}));
}

TEST_F(InterleaveTest, ReportsAnUnreadableCodeObject) {
  EXPECT_EQ(Interleave({9, 0}, {"_PyEval_EvalFrameDefault"}),
            (Names_{"<unreadable Python frame>"}));
}

}  // namespace
}  // namespace rollcall
