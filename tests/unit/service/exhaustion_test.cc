// SPDX-License-Identifier: Apache-2.0
// Which limits of the system are too low to start, and what the error says.
#include "service/exhaustion.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace rollcall {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr ResourceNeeds kNeeds = {100 * kMiB, 40, 64};

ResourceLimits Allow(uint64_t address_space, uint64_t descriptors) {
  ResourceLimits limits;
  limits.address_space = address_space;
  limits.descriptors = descriptors;
  limits.stack_bytes = 8 * kMiB;
  limits.cores = 10;
  return limits;
}

std::string Error(const ResourceLimits& limits) {
  return std::string(CheckLimits("rollcalld", kNeeds, limits).message());
}

TEST(ExhaustionTest, NoLimitIsEnough) { EXPECT_EQ(Error(Allow(UINT64_MAX, UINT64_MAX)), ""); }

TEST(ExhaustionTest, ExactlyWhatIsNeededIsEnough) { EXPECT_EQ(Error(Allow(500 * kMiB, 64)), ""); }

TEST(ExhaustionTest, TooLittleAddressSpaceIsNamedWithItsLimit) {
  const std::string error = Error(Allow(500 * kMiB - 1, 64));
  EXPECT_NE(error.find("is 499 MiB, and rollcalld needs 500 MiB here"), std::string::npos) << error;
  EXPECT_NE(error.find("ulimit -v"), std::string::npos) << error;
}

TEST(ExhaustionTest, TooFewDescriptorsAreNamedWithTheirLimit) {
  const std::string error = Error(Allow(UINT64_MAX, 63));
  EXPECT_NE(error.find("may open 63 files, and rollcalld needs 64"), std::string::npos) << error;
  EXPECT_NE(error.find("ulimit -n"), std::string::npos) << error;
}

// In a process of its own, with so much address space beyond what it has.
void LimitAddressSpace(uint64_t more) {
  rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  FILE* statm = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  ASSERT_EQ(fscanf(statm, "%lu", &pages), 1);
  fclose(statm);
  limit.rlim_cur = pages * static_cast<uint64_t>(getpagesize()) + more;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

// Not through gtest, which catches exceptions.
void StartThread() noexcept {
  std::thread([] {}).join();
}

void AllowNoMoreFiles() {
  const rlimit standard_ones = {3, 3};
  setrlimit(RLIMIT_NOFILE, &standard_ones);
}

const char* const kNoMemory =
    "^rollcalld: exiting: the system gives it no more memory; .* ulimit -v";

// What an orderly end does: it waits for the signal, and frees and takes memory.
void TakeMemoryUntilStopped() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  EndInOrderWhenExhausted("rollcalld");
  LimitAddressSpace(64 * kMiB);
  std::thread([] {
    static std::vector<std::unique_ptr<char[]>> taken;
    while (ExitCodeOfService() == 0) taken.push_back(std::make_unique<char[]>(kMiB));
  }).detach();
  int signal = 0;
  sigwait(&stop, &signal);
  const auto more = std::make_unique<char[]>(4 * kMiB);
  exit(more != nullptr && signal == SIGTERM ? ExitCodeOfService() : 99);
}

TEST(ExhaustionDeathTest, WithoutMemoryItSaysSoOnceAndStopsInOrder) {
  EXPECT_EXIT(TakeMemoryUntilStopped(), testing::ExitedWithCode(kOutOfResources), kNoMemory);
}

TEST(ExhaustionDeathTest, ARequestThatNoReserveCanServeEndsIt) {
  EXPECT_EXIT(
      {
        signal(SIGTERM, SIG_IGN);
        EndInOrderWhenExhausted("rollcalld");
        LimitAddressSpace(64 * kMiB);
        std::thread([] { std::vector<char> all(900 * kMiB); }).join();
      },
      testing::ExitedWithCode(kOutOfResources), kNoMemory);
}

TEST(ExhaustionDeathTest, AThreadThatCannotStartEndsIt) {
  EXPECT_EXIT(
      {
        EndInOrderWhenExhausted("rollcalld");
        LimitAddressSpace(4 * kMiB);
        StartThread();
      },
      testing::ExitedWithCode(kOutOfResources),
      "^rollcalld: exiting: the system gives it no more threads");
}

TEST(ExhaustionDeathTest, ALibraryThatEndsTheProcessWithoutMemoryIsExplained) {
  EXPECT_EXIT(
      {
        EndInOrderWhenExhausted("rollcalld");
        LimitAddressSpace(4 * kMiB);
        abort();
      },
      testing::ExitedWithCode(kOutOfResources), kNoMemory);
}

TEST(ExhaustionDeathTest, ALibraryThatUsesMemoryItDidNotGetIsExplained) {
  EXPECT_EXIT(
      {
        EndInOrderWhenExhausted("rollcalld");
        LimitAddressSpace(4 * kMiB);
        raise(SIGSEGV);
      },
      testing::ExitedWithCode(kOutOfResources), kNoMemory);
}

TEST(ExhaustionDeathTest, AFaultWithEnoughMemoryIsADefect) {
  EXPECT_EXIT(
      {
        EndInOrderWhenExhausted("rollcalld");
        raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(ExhaustionDeathTest, ALibraryThatEndsTheProcessWithoutDescriptorsIsExplained) {
  EXPECT_EXIT(
      {
        EndInOrderWhenExhausted("rollcalld");
        AllowNoMoreFiles();
        abort();
      },
      testing::ExitedWithCode(kOutOfResources),
      "no more file descriptors; the limit is 3: raise it");
}

TEST(ExhaustionDeathTest, AnyOtherExceptionStillAborts) {
  EXPECT_EXIT(
      {
        EndInOrderWhenExhausted("rollcalld");
        std::thread([] { throw std::logic_error("a defect"); }).join();
      },
      testing::KilledBySignal(SIGABRT), "^rollcalld: a defect");
}

}  // namespace
}  // namespace rollcall
