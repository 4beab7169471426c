// SPDX-License-Identifier: Apache-2.0
// Measures the cost of merging the stacks of a large job:
//   merge_stacks [RANKS [THREADS [FRAMES]]]      (16384 40 30)
// Prints time and memory of Add() for all threads, and of each form.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "daemon/report/stacks/stack_tree.h"

namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

double PeakMebibytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

template <typename Form>
void Time(const char* name, Form form) {
  const auto begun = Clock::now();
  const size_t bytes = form().size();
  std::printf("%-8s %8.2f s   %8.1f MiB of output\n", name, Seconds(begun),
              static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int ranks = number(1, 16384), threads = number(2, 40), frames = number(3, 30);
  rollcall::StackTree tree;
  std::mt19937 random(1);
  // Threads of one role differ in the last frames only, and one rank in a thousand
  // is in another function.
  std::vector<std::vector<uint32_t>> roles(static_cast<size_t>(threads));
  for (int role = 0; role < threads; ++role) {
    for (int depth = 0; depth < frames; ++depth) {
      roles[static_cast<size_t>(role)].push_back(
          tree.Intern(absl::StrCat("role", depth < 3 ? 0 : role, "::function", depth)));
    }
  }
  const auto begun = Clock::now();
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::vector<uint32_t> stack : roles) {
      if (random() % 4 == 0) stack.pop_back();
      if (rank % 1000 == 7) stack[stack.size() / 2] = tree.Intern("elsewhere");
      tree.Add(rank, stack);
    }
  }
  std::printf("%d ranks x %d threads x %d frames\n", ranks, threads, frames);
  std::printf("merge    %8.2f s   %8.1f MiB of memory at most\n", Seconds(begun), PeakMebibytes());
  Time("text", [&] { return rollcall::ToText(tree); });
  Time("folded", [&] { return rollcall::ToFolded(tree); });
  Time("json", [&] { return rollcall::ToJson(tree); });
  Time("dot", [&] { return rollcall::ToDot(tree); });
  std::printf("peak     %19.1f MiB\n", PeakMebibytes());
}
