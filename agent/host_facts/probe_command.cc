// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/probe_command.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/host_facts/probes.h"
#include "agent/stacks/stack_work_main.h"

namespace rollcall {
namespace {

constexpr unsigned kLongestSeconds = 60;  // if the agent that should end it is gone

constexpr char kUsage[] =
    "usage: rollcall-probe NAME [--root=DIR] [--pids=PID,...] [--path=PATH] [--interval-ms=N]\n"
    "Prints facts about this host for rollcall-agent.\n";

bool ReadFlag(absl::string_view flag, std::string* root, ProbeInput* input) {
  int number = 0;
  if (absl::ConsumePrefix(&flag, "--root=")) {
    *root = std::string(flag);
  } else if (absl::ConsumePrefix(&flag, "--path=")) {
    input->path = std::string(flag);
  } else if (absl::ConsumePrefix(&flag, "--interval-ms=")) {
    if (!absl::SimpleAtoi(flag, &number) || number < 0) return false;
    input->interval_ns = number * int64_t{1'000'000};
  } else if (absl::ConsumePrefix(&flag, "--pids=")) {
    for (const absl::string_view pid : absl::StrSplit(flag, ',', absl::SkipEmpty())) {
      if (!absl::SimpleAtoi(pid, &number)) return false;
      input->pids.push_back(number);
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace

int ProbeCommand(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], kStackWorkProbe) == 0) {
    return DoStackWork();
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kLongestSeconds);
  const Probe* probe = argc < 2 ? nullptr : FindProbe(argv[1]);
  ProbeInput input;
  std::string root;
  bool is_valid = probe != nullptr;
  for (int i = 2; i < argc; ++i) is_valid = is_valid && ReadFlag(argv[i], &root, &input);
  if (!is_valid) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const ProbeInput rooted = {HostFiles(root), input.pids, input.interval_ns, input.path,
                             input.pause};
  const std::string lines = ToLines(probe->run(rooted));
  std::fwrite(lines.data(), 1, lines.size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace rollcall
