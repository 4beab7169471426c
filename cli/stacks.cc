// rollcall stacks: what the threads of processes on this host are doing, now,
// without an agent or a daemon. The processes run on.
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/rank_environment.h"
#include "agent/stacks.h"
#include "cli/commands.h"
#include "daemon/stacks/stack_tree.h"

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

std::vector<Taken> TakeAll(const std::vector<pid_t>& pids) {
  StackReader reader;
  PtraceStackTaker taker;
  std::vector<Taken> all;
  for (const pid_t pid : pids) {
    Taken taken;
    taken.rank = FindRankInEnviron(ReadEnviron(pid)).place.rank;
    taken.has_rank = taken.rank >= 0;
    if (!taken.has_rank) taken.rank = static_cast<int32_t>(all.size());
    taken.stack = reader.TakeAndUnwind(&taker, pid, TakeLimits());
    all.push_back(std::move(taken));
  }
  return all;
}

std::string LabelOf(const Frame& frame) {
  if (!frame.function.empty()) return frame.function;
  const size_t slash = frame.module.rfind('/');
  const std::string module =
      slash == std::string::npos ? frame.module : frame.module.substr(slash + 1);
  return absl::StrFormat("%s+0x%x", module.empty() ? "?" : module, frame.module_offset);
}

StackTree Merge(const std::vector<Taken>& all) {
  StackTree tree;
  for (const Taken& taken : all) {
    for (const ThreadStack& thread : taken.stack.threads) {
      std::vector<uint32_t> frames;
      for (auto frame = thread.frames.rbegin(); frame != thread.frames.rend(); ++frame) {
        frames.push_back(tree.Intern(LabelOf(*frame)));
      }
      if (!frames.empty()) tree.Add(taken.rank, frames);
    }
  }
  return tree;
}

void PrintEach(const std::vector<Taken>& all) {
  for (const Taken& taken : all) {
    if (taken.stack.threads.empty()) continue;
    std::cout << "process " << taken.stack.pid;
    if (taken.has_rank) std::cout << ", rank " << taken.rank;
    std::cout << ", " << taken.stack.threads.size()
              << (taken.stack.threads.size() == 1 ? " thread" : " threads") << "\n";
    for (const ThreadStack& thread : taken.stack.threads) std::cout << FormatThreadStack(thread);
    std::cout << "\n";
  }
}

// True if some process gave nothing at all.
bool PrintErrors(const std::vector<Taken>& all) {
  bool failed = false;
  for (const Taken& taken : all) {
    if (taken.stack.error.empty()) continue;
    std::cerr << "rollcall: process " << taken.stack.pid << ": " << taken.stack.error << "\n";
    bool any = false;
    for (const ThreadStack& thread : taken.stack.threads) any = any || !thread.frames.empty();
    failed = failed || !any;
  }
  return failed;
}

}  // namespace

int StacksCommand(const std::vector<std::string>& arguments) {
  std::string format = "text";
  bool merged = false;
  std::vector<std::string> names;
  CLI::App app("Prints the stacks of processes on this host, which run on.", "rollcall stacks");
  app.add_option("--format", format,
                 "text; or, all merged into one tree: json, folded (for flame graphs), dot")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "folded", "dot"}));
  app.add_flag("--merge", merged, "text: all threads in one tree, what differs first");
  app.add_option("PID", names, "processes on this host")->required();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;

  std::vector<pid_t> pids;
  if (!ParsePids(names, &pids)) return kExitBadUsage;
  const std::vector<Taken> all = TakeAll(pids);
  if (format == "text" && !merged) {
    PrintEach(all);
  } else {
    const StackTree tree = Merge(all);
    std::cout << (format == "text"     ? ToText(tree)
                  : format == "json"   ? ToJson(tree)
                  : format == "folded" ? ToFolded(tree)
                                       : ToDot(tree));
  }
  return PrintErrors(all) ? 1 : 0;
}

}  // namespace rollcall
