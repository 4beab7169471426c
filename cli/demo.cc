// SPDX-License-Identifier: Apache-2.0
// rollcall demo: runs a job that hangs, on the simulated NCCL, so that a newcomer sees a verdict
// within seconds.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"

namespace rollcall {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitOfSignal = 128;  // plus the number of the signal that ended the job

// Returns the full path of a Python on the PATH, or "".
std::string FindPython() {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (const char* name : {"python3", "python"}) {
    for (size_t begin = 0; begin <= rest.size();) {
      const size_t end = std::min(rest.find(':', begin), rest.size());
      const std::string file = absl::StrCat(rest.substr(begin, end - begin), "/", name);
      if (access(file.c_str(), X_OK) == 0) return file;
      begin = end + 1;
    }
  }
  return "";
}

bool IsEndedByPerson(int code) {
  return code == kExitOfSignal + SIGINT || code == kExitOfSignal + SIGTERM ||
         code == kExitOfSignal + SIGHUP;
}

}  // namespace

int DemoCommand(const std::vector<std::string>& arguments) {
  std::string reports = "./rollcall-reports";
  CLI::App app(
      "Runs a job of four ranks that hangs, without a GPU, and shows the verdict. Ends the job\n"
      "afterwards.",
      "rollcall demo");
  app.add_option("--report-dir", reports, "folder for the report")->capture_default_str();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::string script = FindDemo(), python = FindPython();
  if (script.empty() || FindSimulation().empty() || python.empty()) {
    std::cerr << "rollcall demo: "
              << (python.empty() ? "python3 is not on the PATH"
                                 : "this installation lacks the demo or the simulated NCCL")
              << "\n  a job of your own:  rollcall run COMMAND...\n";
    return kExitFailed;
  }
  std::cout << "Four ranks train on a simulated NCCL. After step 5, rank 3 does something else.\n"
            << "  rollcall run --sim --hang-after=3s --on-hang=abort python3 " << script << "\n"
            << std::endl;
  const int code = RunCommand({"--sim", "--hang-after=3s", "--on-hang=abort", "--http=none",
                               absl::StrCat("--report-dir=", reports), "--", python, script});
  if (code == kExitHangAborted) {
    std::cout << "\nUnder your own job:  rollcall run torchrun --nproc-per-node 8 train.py\n";
    return 0;
  }
  if (IsEndedByPerson(code)) {
    std::cerr << "rollcall demo: stopped before the verdict\n  once more:  rollcall demo\n";
    return code;
  }
  std::cerr << "rollcall demo: expected a verdict, and the job ended with " << code
            << "\n  the simulated NCCL needs glibc 2.34 and libstdc++ of GCC 12, or newer\n";
  return kExitFailed;
}

}  // namespace rollcall
