// rollcall stacks: what the threads of processes on this host are doing, now,
// without an agent or a daemon. The processes run on.
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/rank_environment.h"
#include "agent/stacks.h"
#include "agent/stacks_proto.h"
#include "cli/commands.h"
#include "daemon/stacks/merge.h"
#include "daemon/stacks/stack_tree.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

struct Taken {
  int32_t rank = -1;  // as its launcher gave it; else the place on the command line
  bool has_rank = false;
  ProcessStack stack;
};

std::string ReadEnviron(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Pids, in the order given, each once; false: said what is wrong.
bool ParsePids(const std::vector<std::string>& arguments, std::vector<pid_t>* pids) {
  std::set<pid_t> seen;
  for (const std::string& argument : arguments) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(argument, &pid) || pid <= 0) {
      std::cerr << "rollcall stacks: " << argument
                << ": not a process number; give those of processes on this host, as ps has them\n";
      return false;
    }
    if (seen.insert(pid).second) pids->push_back(pid);
  }
  return true;
}

std::unique_ptr<StackTaker> MakeTaker(const std::string& way) {
  if (way == "outside") return std::make_unique<PtraceStackTaker>();
  if (way == "inside") return std::make_unique<SignalStackTaker>();
  return std::make_unique<AnyWayStackTaker>();
}

std::vector<Taken> TakeAll(const std::vector<pid_t>& pids, StackTaker* taker) {
  StackReader reader;
  std::vector<Taken> all;
  for (const pid_t pid : pids) {
    Taken taken;
    taken.rank = FindRankInEnviron(ReadEnviron(pid)).place.rank;
    taken.has_rank = taken.rank >= 0;
    if (!taken.has_rank) taken.rank = static_cast<int32_t>(all.size());
    taken.stack = reader.TakeAndUnwind(taker, pid, TakeLimits());
    all.push_back(std::move(taken));
  }
  return all;
}

StackTree Merge(const std::vector<Taken>& all) {
  StackTree tree;
  for (const Taken& taken : all) {
    AddToTree(ToProto(taken.stack), taken.rank, &tree);
  }
  return tree;
}

void PrintEach(const std::vector<Taken>& all) {
  for (const Taken& taken : all) {
    if (taken.stack.threads.empty()) continue;
    std::cout << FormatProcessStack(taken.stack, taken.has_rank ? taken.rank : -1);
    std::cout << "\n";
  }
}

// True if some process gave nothing at all. `said`: the errors of those that gave something are
// out.
bool PrintErrors(const std::vector<Taken>& all, bool said) {
  bool failed = false;
  for (const Taken& taken : all) {
    if (taken.stack.error.empty()) continue;
    if (!said || taken.stack.threads.empty()) {
      std::cerr << "rollcall: process " << taken.stack.pid << ": " << taken.stack.error << "\n";
    }
    bool any = false;
    for (const ThreadStack& thread : taken.stack.threads) any = any || !thread.frames.empty();
    failed = failed || !any;
  }
  return failed;
}

}  // namespace

int StacksCommand(const std::vector<std::string>& arguments) {
  std::string format = "text";
  std::string way = "auto";
  bool merged = false;
  std::vector<std::string> names;
  CLI::App app("Prints the stacks of processes on this host, which run on.", "rollcall stacks");
  app.add_option("--format", format,
                 "text; or, all merged into one tree: json, folded (for flame graphs), dot")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "folded", "dot"}));
  app.add_flag("--merge", merged, "text: all threads in one tree, what differs first");
  app.add_option("--way", way,
                 "outside: by ptrace; inside: by a signal that the process's own library answers; "
                 "auto: from outside where the kernel permits it")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "outside", "inside"}));
  app.add_option("PID", names, "processes on this host")->required();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;

  std::vector<pid_t> pids;
  if (!ParsePids(names, &pids)) return kExitBadUsage;
  const std::vector<Taken> all = TakeAll(pids, MakeTaker(way).get());
  const bool each = format == "text" && !merged;
  if (each) {
    PrintEach(all);
  } else {
    const StackTree tree = Merge(all);
    std::cout << (format == "text"     ? ToText(tree)
                  : format == "json"   ? ToJson(tree)
                  : format == "folded" ? ToFolded(tree)
                                       : ToDot(tree));
  }
  return PrintErrors(all, each) ? 1 : 0;
}

}  // namespace rollcall
