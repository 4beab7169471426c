// SPDX-License-Identifier: Apache-2.0
// Starts N ranks of a program, as torchrun does:
//
//   ranks -n N [--keep-going] [--grace SECONDS] [--] CMD...
//
// Each rank has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and, to share a
// unique id, ROLLCALL_TEST_ID_FILE. Exits with the first exit code that is not
// 0 (128 plus the signal for a killed rank). When a rank fails, the others get
// SIGTERM after the grace (5 s), and SIGKILL after the same time again. With
// --keep-going they get no signal. Passes SIGTERM and SIGINT on.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

namespace {

struct Options {
  int ranks = 0;
  bool keep_going = false;
  int grace_seconds = 5;
  char** command = nullptr;
};

int Usage() {
  fprintf(stderr, "usage: ranks -n N [--keep-going] [--grace SECONDS] [--] CMD...\n");
  return 2;
}

bool Parse(int argc, char** argv, Options* options) {
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    const std::string flag = argv[i];
    if (flag == "--") {
      ++i;
      break;
    }
    if (flag == "--keep-going") {
      options->keep_going = true;
    } else if (flag == "-n" && i + 1 < argc) {
      options->ranks = atoi(argv[++i]);
    } else if (flag == "--grace" && i + 1 < argc) {
      options->grace_seconds = atoi(argv[++i]);
    } else {
      return false;
    }
  }
  options->command = argv + i;
  return options->ranks > 0 && i < argc;
}

pid_t StartRank(const Options& options, int rank, const std::string& id_file) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // hung ranks must not outlive a killed launcher
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  setenv("ROLLCALL_TEST_ID_FILE", id_file.c_str(), 1);
  execvp(options.command[0], options.command);
  fprintf(stderr, "ranks: %s: %s\n", options.command[0], strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

void SignalAll(const std::map<pid_t, int>& ranks, int signal) {
  for (const auto& [pid, rank] : ranks) kill(pid, signal);
}

// Waits for all of them; returns the exit code.
int WaitForAll(const Options& options, std::map<pid_t, int> ranks, const sigset_t& signals) {
  int exit_code = 0;
  int next = SIGTERM;   // the signal for the other ranks at the deadline
  time_t deadline = 0;  // 0 if there is none
  while (!ranks.empty()) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      ranks.erase(pid);
      const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (exit_code == 0) exit_code = code;
      if (code != 0 && deadline == 0 && !options.keep_going) {
        deadline = time(nullptr) + options.grace_seconds;
      }
      continue;
    }
    if (deadline != 0 && time(nullptr) >= deadline) {
      SignalAll(ranks, next);
      next = SIGKILL;
      deadline = time(nullptr) + options.grace_seconds;
    }
    const timespec tick = {0, 50'000'000};
    const int signal = sigtimedwait(&signals, nullptr, &tick);
    if (signal == SIGTERM || signal == SIGINT) SignalAll(ranks, signal);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) return Usage();
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  char directory[] = "/tmp/ranks-XXXXXX";
  if (mkdtemp(directory) == nullptr) {
    perror("ranks: /tmp");
    return 1;
  }
  std::map<pid_t, int> ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = StartRank(options, rank, std::string(directory) + "/id");
    if (pid < 0) {
      perror("ranks: fork");
      SignalAll(ranks, SIGKILL);
      return 1;
    }
    ranks[pid] = rank;
  }
  const int exit_code = WaitForAll(options, ranks, signals);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return exit_code;
}
