// SPDX-License-Identifier: Apache-2.0
// The engine of preset fuzz-fast: looks for inputs that reach new code, as libFuzzer does, with the
// flags and the last lines of libFuzzer that run.sh needs, and several times as many inputs a
// second. It counts edges only. The build with sanitizers runs each input that this one writes.
//
//   fuzz_TARGET [-max_total_time=SECONDS] [-runs=N] [-artifact_prefix=PATH] [-seed=N] NEW
//   [FOLDER...]
//
// Writes inputs that reach new code into the folder NEW, and begins with those in all folders. An
// input that crashes, takes 120 s or breaks a promise lies at PATH afterwards, and the exit code
// is 77. Other flags of libFuzzer do nothing.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fast/edge_counters.h"
#include "fast/input_pool.h"
#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSeconds = 120;  // for one input
constexpr int kBroken = 77;

struct Flags {
  long seconds = 0;  // 0 means no limit
  uint64_t runs = 0;
  std::string artifacts = "./";
  unsigned seed = std::random_device()();
  std::vector<std::string> folders;
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (name == "-max_total_time") flags.seconds = std::atol(value.c_str());
    if (name == "-runs") flags.runs = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "-artifact_prefix") flags.artifacts = value;
    if (name == "-seed") flags.seed = static_cast<unsigned>(std::atol(value.c_str()));
    if (text[0] != '-') flags.folders.push_back(text);
  }
  return flags;
}

// The input that runs now, for the handlers of signals.
std::string_view current;
char artifact[4096];
volatile sig_atomic_t seconds_of_input = 0;
volatile sig_atomic_t seconds = 0;

void SaveInput(int signal) {
  const int fd = open(artifact, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, current.data(), current.size()) < 0) _exit(kBroken);
  std::fprintf(stderr, "signal %d; the input is in %s\n", signal, artifact);
  _exit(kBroken);
}

void CountSecond(int /*signal*/) {
  seconds = seconds + 1;
  seconds_of_input = seconds_of_input + 1;
  if (seconds_of_input >= kMostSeconds) SaveInput(SIGALRM);
}

// On a stack of its own: an input may have used up the other one.
void InstallHandlers(const Flags& flags) {
  std::snprintf(artifact, sizeof(artifact), "%scrash-%d", flags.artifacts.c_str(), getpid());
  static char room[1 << 16];
  const stack_t stack = {room, 0, sizeof(room)};
  sigaltstack(&stack, nullptr);
  struct sigaction save = {};
  save.sa_handler = SaveInput;
  save.sa_flags = SA_ONSTACK;
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    sigaction(number, &save, nullptr);
  }
  struct sigaction each_second = {};
  each_second.sa_handler = CountSecond;
  each_second.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &each_second, nullptr);
  const itimerval timer = {{1, 0}, {1, 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

class Search {
 public:
  Search(const Target& target, const Flags& flags)
      : target_(target), flags_(flags), pool_(target, flags.seed) {}

  void ReadFolders() {
    for (const std::string& folder : flags_.folders) {
      for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string input{std::istreambuf_iterator<char>(file), {}};
        if (input.size() <= target_.most_bytes && Run(input)) pool_.Add(input);
      }
    }
  }

  void Go() {
    while (!IsOver()) {
      const std::string_view input = pool_.MakeNext();
      if (!Run(input)) continue;
      pool_.Add(input);
      Write(input);
    }
  }

  void PrintStatistics() const {
    std::fprintf(stderr, "#%llu DONE cov: %zu corp: %zu of %zu edges\n",
                 static_cast<unsigned long long>(runs_), counters_.edges(), pool_.size(),
                 counters_.all());
    std::fprintf(stderr, "stat::number_of_executed_units: %llu\nstat::new_units_added: %zu\n",
                 static_cast<unsigned long long>(runs_), written_);
  }

 private:
  bool IsOver() const {
    return (flags_.seconds > 0 && seconds >= flags_.seconds) ||
           (flags_.runs > 0 && runs_ >= flags_.runs);
  }

  // True if it reached new code.
  bool Run(std::string_view input) {
    current = input;
    seconds_of_input = 0;
    counters_.Clear();
    RunChecked(target_, reinterpret_cast<const uint8_t*>(input.data()), input.size());
    ++runs_;
    return counters_.FindNew();
  }

  void Write(std::string_view input) {
    if (flags_.folders.empty()) return;
    char name[32];
    std::snprintf(name, sizeof(name), "%016zx", std::hash<std::string_view>()(input));
    std::ofstream(fs::path(flags_.folders.front()) / name, std::ios::binary) << input;
    ++written_;
  }

  const Target& target_;
  const Flags& flags_;
  EdgeCounters& counters_ = EdgeCounters::Get();
  InputPool pool_;
  uint64_t runs_ = 0;
  size_t written_ = 0;
};

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  InstallHandlers(flags);
  Search search(Targets().at(0), flags);
  search.ReadFolders();
  search.Go();
  search.PrintStatistics();
  std::fflush(nullptr);
  _exit(0);  // a target may have threads
}

}  // namespace
}  // namespace fuzz
}  // namespace rollcall

int main(int argc, char** argv) { return rollcall::fuzz::Main(argc, argv); }
