// SPDX-License-Identifier: Apache-2.0
// The first errors of ranks in logs of launchers, NCCL and PyTorch.
#include "cli/error_lines.h"

#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

std::vector<ErrorLine> Errors(const std::string& text, const std::string& path = "job.log") {
  std::istringstream log(text);
  return FindFirstErrors(log, path, *DefaultRedactor());
}

TEST(ErrorLinesTest, AnExceptionIsTheLastLineOfItsTraceback) {
  const auto errors = Errors(
      "epoch 0\n"
      "[rank2]: Traceback (most recent call last):\n"
      "[rank2]:   File \"train.py\", line 3, in <module>\n"
      "[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].writer.rank, 2);
  EXPECT_EQ(errors[0].text, "torch.cuda.OutOfMemoryError: CUDA out of memory");
  EXPECT_EQ(errors[0].line, 4u);
}

TEST(ErrorLinesTest, OnlyTheFirstErrorOfEachRankCounts) {
  const auto errors =
      Errors("[rank1]: ValueError: one\n[rank3]: KeyError: three\n[rank1]: ValueError: two\n");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].text, "ValueError: one");
  EXPECT_EQ(errors[1].writer.rank, 3);
}

TEST(ErrorLinesTest, TheWatchdogOfPyTorchHasARankAndATime) {
  const auto errors = Errors(
      "[rank0]:[E1123 20:58:48.123456789 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught "
      "collective operation timeout\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].writer.rank, 0);
  EXPECT_EQ(errors[0].time, "20:58:48.123456789");
}

TEST(ErrorLinesTest, NcclNamesItsHostAndProcess) {
  const auto errors = Errors(
      "[2026-11-23 10:00:01] node-17:4121:4130 [3] transport/net_ib.cc:1038 NCCL WARN NET/IB : "
      "collective mismatch error\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].writer.host, "node-17");
  EXPECT_EQ(errors[0].writer.pid, 4121);
  EXPECT_EQ(errors[0].time, "2026-11-23 10:00:01");
  EXPECT_EQ(errors[0].text, "NCCL WARN NET/IB : collective mismatch error");
}

TEST(ErrorLinesTest, AnMpiLauncherNamesTheRank) {
  const auto errors = Errors("[1,5]<stderr>: RuntimeError: no\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].text, "RuntimeError: no");
}

TEST(ErrorLinesTest, TheNameOfALogMayHoldTheRank) {
  EXPECT_EQ(RankInPath("logs/train_rank_12.log"), 12);
  EXPECT_EQ(RankInPath("rank7.err"), 7);
  EXPECT_EQ(RankInPath("torchrun/attempt_0/3/stderr.log"), 3);
  EXPECT_EQ(RankInPath("franklin.log"), -1);
  EXPECT_EQ(RankInPath(""), -1);
  EXPECT_EQ(Errors("ValueError: x\n", "a/5/stderr.log")[0].writer.rank, 5);
}

TEST(ErrorLinesTest, OrdinaryLinesAreNotErrors) {
  EXPECT_TRUE(Errors("loss 0.3\nError rate: 0.1\nsee ValueError in the docs\n\n").empty());
}

TEST(ErrorLinesTest, HostileLinesDoNoHarm) {
  const std::string bytes = std::string("[rank") + std::string(5000, '9') + "]: ValueError: x\n" +
                            std::string(3, '\0') + "[1,\n[rank]:\n:::: NCCL WARN \x1b[2J\n";
  for (size_t size = 0; size <= bytes.size(); ++size) Errors(bytes.substr(0, size));
  for (const ErrorLine& error : Errors(bytes)) {
    EXPECT_LE(error.text.size(), kLongestErrorLine);
    EXPECT_EQ(error.text.find('\x1b'), std::string::npos);
  }
}

// Joined from parts, so that no scanner of repositories takes the test for a leak.
const std::string kToken = absl::StrCat("hf", "_", "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAbC");

TEST(ErrorLinesTest, NoPartOfASecretIsShown) {
  for (size_t before = 0; before <= kLongestErrorLine + 10; ++before) {
    const auto errors = Errors(absl::StrCat("ValueError: ", std::string(before, 'x'), " ", kToken));
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].text.find("hf_"), std::string::npos) << errors[0].text;
    EXPECT_LE(errors[0].text.size(), kLongestErrorLine);
  }
}

TEST(ErrorLinesTest, NoPartOfASecretIsShownWhereAVeryLongLineIsCut) {
  for (size_t before = kMaxRedactedText - 80; before <= kMaxRedactedText; ++before) {
    const std::string mark = "NCCL WARN ";
    const auto errors = Errors(
        absl::StrCat(std::string(before - mark.size(), 'x'), mark, kToken, std::string(100, ' ')));
    for (const ErrorLine& error : errors) {
      EXPECT_EQ(error.text.find("hf_"), std::string::npos) << error.text;
    }
  }
}

TEST(ErrorLinesTest, ColoursAreLeftOutAndProtectNoSecret) {
  const auto errors = Errors("ValueError: \x1b[36mpassword\x1b[0m=\x1b[35mhunter2\x1b[0m\tx\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].text, "ValueError: password=[redacted] x");
}

TEST(ErrorLinesTest, LinesAfterAVeryLongOneKeepTheirNumbers) {
  const auto errors =
      Errors(absl::StrCat("x\n", std::string(1 << 20, 'x'), "\n\n[rank3]: ValueError: y"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].line, 4u);
  EXPECT_EQ(errors[0].text, "ValueError: y");
}

// Zeros without an end, as a sparse file has them.
class Zeros : public std::streambuf {
 public:
  Zeros() { setg(zeros_, zeros_, zeros_); }
  uint64_t read() const { return read_; }

 protected:
  int_type underflow() override {
    read_ += sizeof(zeros_);
    setg(zeros_, zeros_, zeros_ + sizeof(zeros_));
    return 0;
  }

 private:
  char zeros_[1 << 16] = {};
  uint64_t read_ = 0;
};

TEST(ErrorLinesTest, ALineWithoutAnEndIsGivenUp) {
  Zeros zeros;
  std::istream log(&zeros);
  EXPECT_TRUE(FindFirstErrors(log, "job.log", *DefaultRedactor()).empty());
  EXPECT_LE(zeros.read(), uint64_t{513} << 20);
}

}  // namespace
}  // namespace rollcall
