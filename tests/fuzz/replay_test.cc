// SPDX-License-Identifier: Apache-2.0
// The short form of fuzzing, for every build: runs each target on its corpus, on inputs that the
// code of today makes, and on changes of both. README.md has the long form.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "byte_mutator.h"
#include "fuzz_target.h"
#include "kept_inputs.h"
#include "seeds.h"

namespace rollcall {
namespace fuzz {

// For gtest.
void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

namespace fs = std::filesystem;

constexpr int kChanged = 500;         // changed inputs of each target
constexpr unsigned kMostChanges = 4;  // of one input
#ifdef __SANITIZE_ADDRESS__
constexpr long kQuarantineKb = 256 * 1024;  // AddressSanitizer keeps so much of what is freed
#else
constexpr long kQuarantineKb = 0;
#endif
// Of this process's memory, with one target.
constexpr long kMostGrowthKb = 256 * 1024 + kQuarantineKb;

// The input that runs now: a target that crashes leaves it behind.
class LastInput {
 public:
  static void Set(const std::string& target, const std::string& bytes) {
    path_ = "fuzz-crash-" + target;
    bytes_ = bytes;
  }
  static void InstallHandlers() {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, Save);
  }

 private:
  static void Save(int signal) {
    std::ofstream(path_, std::ios::binary) << bytes_;
    std::fprintf(stderr, "the input is in %s\n", fs::absolute(path_).c_str());
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }

  inline static std::string path_, bytes_;
};

// The kept inputs and the seeds.
std::vector<std::string> Corpus(const std::string& target) {
  std::vector<std::string> inputs = KeptInputs(ROLLCALL_FUZZ_CORPUS, target);
  static const Seeds& seeds = *new Seeds(AllSeeds());
  const auto known = seeds.find(target);
  if (known != seeds.end()) inputs.insert(inputs.end(), known->second.begin(), known->second.end());
  return inputs;
}

std::string Changed(const Target& target, std::string input, std::minstd_rand* random) {
  size_t size = std::min(input.size(), target.most_bytes);
  input.resize(target.most_bytes);
  auto* bytes = reinterpret_cast<uint8_t*>(input.data());
  const auto changes = 1 + (*random)() % kMostChanges;
  for (unsigned i = 0; i < changes; ++i) {
    size = target.mutate == nullptr
               ? MutateBytes(bytes, size, target.most_bytes, random)
               : target.mutate(bytes, size, target.most_bytes, static_cast<unsigned>((*random)()));
  }
  input.resize(size);
  return input;
}

void RunOn(const Target& target, const std::string& input) {
  LastInput::Set(target.name, input);
  RunChecked(target, reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

long PeakKb() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class FuzzReplayTest : public testing::TestWithParam<Target> {};

TEST_P(FuzzReplayTest, KeepsItsPromisesOnItsCorpusAndOnChangedInputs) {
  const Target& target = GetParam();
  const std::vector<std::string> corpus = Corpus(target.name);
  ASSERT_FALSE(corpus.empty());
  LastInput::InstallHandlers();
  const long before_kb = PeakKb();
  for (const std::string& input : corpus) {
    EXPECT_LE(input.size(), target.most_bytes);
    RunOn(target, input);
  }
  std::minstd_rand random(1);
  for (int i = 0; i < kChanged; ++i) {
    RunOn(target, Changed(target, corpus[random() % corpus.size()], &random));
  }
  EXPECT_LT(PeakKb() - before_kb, kMostGrowthKb);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, FuzzReplayTest, testing::ValuesIn(Targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
