// SPDX-License-Identifier: Apache-2.0
// rollcall stacks: prints the stacks of processes on this host, without an agent or a
// daemon, or the stacks of a job through its daemon. The processes keep running.
#include <errno.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/collector/host_scan.h"
#include "agent/link/daemon_channel.h"
#include "agent/link/stacks_proto.h"
#include "agent/processes/rank_environment.h"
#include "agent/processes/stacks_switch.h"
#include "agent/stacks/any_stack_taker.h"
#include "agent/stacks/stack_reader.h"
#include "base/clean_text.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"
#include "cli/commands.h"
#include "cli/diagnose/find.h"
#include "cli/diagnose/ranks.h"
#include "cli/diagnose/who_differs.h"
#include "cli/query.h"
#include "cli/usage.h"
#include "daemon/access/clean_message.h"
#include "daemon/report/stack_merge.h"
#include "daemon/report/stacks/stack_tree.h"
#include "daemon/report/stacks_text.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

struct Taken {
  int32_t rank = -1;  // from the launcher; else the place on the command line
  bool has_rank = false;
  ProcessStack stack;
};

std::string ReadEnviron(pid_t pid) {
  return ReadFile(absl::StrCat("/proc/", pid, "/environ"), kMaxEnvironBytes).value_or("");
}

bool IsProcess(const std::string& argument, pid_t* pid) {
  return absl::SimpleAtoi(argument, pid) && *pid > 0 && (kill(*pid, 0) == 0 || errno == EPERM);
}

// Parses the pids, in the given order, each once. False after an error, which this function has
// printed.
bool ParsePids(const std::vector<std::string>& arguments, std::vector<pid_t>* pids) {
  std::set<pid_t> seen;
  for (const std::string& argument : arguments) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(argument, &pid) || pid <= 0) {
      std::cerr << "rollcall stacks: " << CleanText(argument)
                << ": not a process number\n  processes of this host:  rollcall stacks PID...   "
                   "(ps -e lists them)\n  a job:                   rollcall stacks JOB\n";
      return false;
    }
    if (seen.insert(pid).second) pids->push_back(pid);
  }
  return true;
}

std::unique_ptr<StackTaker> MakeTaker(const std::string& way) {
  if (way == "outside") return std::make_unique<PtraceStackTaker>();
  if (way == "inside") return std::make_unique<SignalStackTaker>();
  return std::make_unique<AnyStackTaker>();
}

std::vector<Taken> TakeAll(const std::vector<pid_t>& pids, StackTaker* taker) {
  StackReader reader;
  PtraceStackTaker outside;
  std::vector<Taken> all;
  for (const pid_t pid : pids) {
    Taken taken;
    taken.rank = FindRankInEnviron(ReadEnviron(pid)).coordinates.rank;
    taken.has_rank = taken.rank >= 0;
    if (!taken.has_rank) taken.rank = static_cast<int32_t>(all.size());
    taken.stack.pid = pid;
    bool only_outside = false;
    taken.stack.error = WhyNoStacks("/proc", pid, &only_outside);
    StackTaker* const used = only_outside ? &outside : taker;
    if (taken.stack.error.empty()) taken.stack = reader.TakeAndUnwind(used, pid, TakeLimits());
    all.push_back(std::move(taken));
  }
  return all;
}

// `native`: with the frames of the interpreter's own code.
StackTree Merge(const std::vector<Taken>& all, bool native) {
  StackTree tree;
  for (const Taken& taken : all) {
    const v1::ProcessStack stack = ToProto(taken.stack);
    AddToTree(native ? stack : WithoutInterpreter(stack), taken.rank, &tree);
  }
  return tree;
}

// Prints one sentence above the tree.
void PrintWhoDiffers(const std::vector<Taken>& all) {
  std::vector<RankStack> stacks;
  for (const Taken& taken : all) stacks.emplace_back(taken.rank, ToProto(taken.stack));
  const std::string text = WhoDiffers(stacks);
  if (!text.empty()) std::cout << CleanText(text) << "\n\n";
}

void PrintEach(const std::vector<Taken>& all) {
  for (const Taken& taken : all) {
    if (taken.stack.threads.empty()) continue;
    std::cout << FormatProcessStack(taken.stack, taken.has_rank ? taken.rank : -1);
    std::cout << "\n";
  }
}

// Returns true if some process gave no frame at all. `printed`: PrintEach() has printed the errors
// of processes with threads.
bool PrintErrors(const std::vector<Taken>& all, bool printed) {
  bool failed = false;
  for (const Taken& taken : all) {
    if (taken.stack.error.empty()) continue;
    if (!printed || taken.stack.threads.empty()) {
      std::cerr << "rollcall: process " << taken.stack.pid << ": " << taken.stack.error << "\n";
    }
    bool any = false;
    for (const ThreadStack& thread : taken.stack.threads) any = any || !thread.frames.empty();
    failed = failed || !any;
  }
  return failed;
}

void PrintTree(const StackTree& tree, const std::string& format) {
  std::cout << (format == "text"     ? ToText(tree)
                : format == "json"   ? ToJson(tree)
                : format == "folded" ? ToFolded(tree)
                                     : ToDot(tree));
}

struct Flags {
  std::string format = "text";
  std::string way = "auto";
  DaemonAddress daemon;
  JobFlags chosen;
  std::vector<std::string> ranks, hosts;
  bool merge = false;
  bool each = false;
  bool here = false;
  bool native = false;
  std::vector<std::string> names;
};

void AddStacksFlags(CLI::App* app, Flags* flags) {
  app->add_option("--format", flags->format,
                  "output format: text; or one merged tree: json, folded (for flame graphs), dot")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "folded", "dot"}));
  auto* merge = app->add_flag("--merge", flags->merge,
                              "text: merge all threads into one tree, differences first");
  app->add_flag("--each", flags->each, "text: print the processes of a job one by one, not merged")
      ->excludes(merge);
  AddDaemonFlags(app, &flags->daemon);
  app->add_option("--rank", flags->ranks, "JOB: only these ranks, for example 0-3,7")
      ->allow_extra_args(false);
  app->add_option("--host", flags->hosts, "JOB: only processes of this host; can be repeated")
      ->allow_extra_args(false);
  AddJobFlags(app, &flags->chosen);
  app->add_option("--way", flags->way,
                  "PID: outside: use ptrace; inside: send a signal that the library in the process "
                  "answers; auto: outside if the kernel permits it")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "outside", "inside"}));
  app->add_flag("--here", flags->here,
                "the ranks of your distributed jobs on this host, merged, as `rollcall diagnose` "
                "finds them (no daemon needed)");
  app->add_flag("--native", flags->native, "--here: with the frames of the interpreter's own code");
  app->add_option("JOB|PID", flags->names,
                  "name of a job on a daemon, or process numbers of this host (no daemon needed)");
}

int StacksOfProcesses(const Flags& flags, const std::vector<pid_t>& pids) {
  const std::vector<Taken> all = TakeAll(pids, MakeTaker(flags.way).get());
  const bool each = flags.format == "text" && !flags.merge;
  if (each) {
    PrintEach(all);
  } else {
    if (flags.here && flags.format == "text") PrintWhoDiffers(all);
    PrintTree(Merge(all, !flags.here || flags.native), flags.format);
  }
  return PrintErrors(all, each) ? 1 : 0;
}

// --here: those of this user, or of the jobs of the named processes.
int StacksOfThisHost(const CLI::App& app, Flags flags) {
  FindOptions options;
  options.uid = geteuid();
  if (!ParsePids(flags.names, &options.pids)) return kExitBadUsage;
  SpareThreads threads;
  FoundProcesses found = FindProcesses(options, &threads);
  std::vector<pid_t> pids;
  for (const ChosenRank& rank : ChooseRanks(&found.processes, options.pids, getpid())) {
    if (rank.found_by == kFoundAsZombie) continue;
    pids.push_back(found.processes[rank.at].process.process.pid);
  }
  if (pids.empty()) {
    return RefuseUsage(app,
                       "found no process of a distributed job of this user on this host"
                       "\n  processes of this host:  rollcall stacks PID...");
  }
  flags.merge = !flags.each;
  return StacksOfProcesses(flags, pids);
}

// The processes of this user that run a rank of the job on this host. After some seconds, leaves
// out a process that the kernel does not let this function read because its memory is locked.
std::vector<pid_t> ProcessesOfJob(const std::string& job) {
  constexpr int64_t kPatienceNs = 5'000'000'000;
  ScanOptions options;
  options.uid = geteuid();
  HostScan scan(options, std::make_shared<SpareThreads>());
  scan.Poll(MonotonicNs(), 0, MapsToRead::kNone, kPatienceNs);
  std::vector<pid_t> pids;
  const std::shared_ptr<const ScanResult> result = scan.newest();
  if (result == nullptr) return pids;
  for (const DiscoveredProcess& process : result->launched) {
    if (process.job == CanonicalJob(job) && process.is_main) pids.push_back(process.process.pid);
  }
  return pids;
}

// False after an error, which this function has printed.
bool FillRequest(const Flags& flags, v1::TakeStacksRequest* request) {
  constexpr size_t kMostRanks = 1 << 20;
  SetJob(flags.names.front(), flags.chosen, request);
  for (const std::string& host : flags.hosts) request->add_hosts(host);
  for (const std::string& text : flags.ranks) {
    const RankRanges ranks(text);
    if (ranks.empty() || ranks.size() > kMostRanks || ranks.List() != text) {
      std::cerr << "rollcall stacks: --rank=" << text
                << ": not a list of ranks in ascending order\n  for example:  --rank=0-3,7\n";
      return false;
    }
    for (const int32_t rank : ranks.First(kMostRanks)) request->add_ranks(rank);
  }
  return true;
}

int StacksOfJob(const Flags& flags) {
  v1::TakeStacksRequest request;
  if (!FillRequest(flags, &request)) return kExitBadUsage;
  const auto channels = DaemonChannels::Open(flags.daemon);
  if (!channels.ok()) {
    std::cerr << "rollcall stacks: " << channels.status().message() << "\n";
    return kExitBadUsage;
  }
  const auto stub = v1::Query::NewStub((*channels)->Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto reader = stub->TakeStacks(&context, request);
  StackTree tree;
  int missing = 0, processes = 0;
  v1::ProcessStack stack;
  while (reader->Read(&stack)) {
    ++processes;
    CleanStrings(&stack);
    if (!stack.error().empty()) {
      std::cerr << "rollcall: rank " << stack.rank() << ", " << stack.host() << ", process "
                << stack.pid() << ": " << stack.error() << "\n";
    }
    missing += stack.threads().empty();
    if (flags.each && flags.format == "text") {
      std::cout << StackToText(stack) << "\n";
    } else {
      AddToTree(stack, stack.rank(), &tree);
    }
  }
  const grpc::Status status = reader->Finish();
  const bool wants_part = !flags.ranks.empty() || !flags.hosts.empty() ||
                          !flags.chosen.tenant.empty() || flags.chosen.attempt != JobFlags::kNewest;
  if (!status.ok() && processes == 0 && !wants_part) {
    const std::vector<pid_t> here = ProcessesOfJob(flags.names.front());
    if (!here.empty()) {
      std::cerr << "rollcall: no stacks of job " << CleanText(flags.names.front())
                << " from the daemon at " << flags.daemon.address << ": "
                << (*channels)->Explain(status)
                << "\nrollcall: printing only the job's processes on this host\n";
      Flags local = flags;
      local.merge = !flags.each;
      return StacksOfProcesses(local, here);
    }
  }
  if (!status.ok()) {
    std::cerr << "rollcall: no stacks of job " << CleanText(flags.names.front())
              << " from the daemon at " << flags.daemon.address << ": "
              << (*channels)->Explain(status)
              << "\n  another daemon?          rollcall stacks --daemon=HOST:PORT JOB"
              << "\n  processes on this host?  rollcall stacks PID...\n";
    return IsBadUsage(status) ? kExitBadUsage : 1;
  }
  if (!flags.each || flags.format != "text") PrintTree(tree, flags.format);
  return missing == processes ? 1 : 0;
}

}  // namespace

int StacksCommand(const std::vector<std::string>& arguments) {
  Flags flags;
  CLI::App app("Prints the stacks of processes. The processes keep running.", "rollcall stacks");
  AddStacksFlags(&app, &flags);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  if (flags.each && flags.format != "text") {
    return RefuseUsage(app, "--each prints text; json, folded and dot are one tree: leave one out");
  }
  if (flags.here) return StacksOfThisHost(app, flags);
  if (flags.names.empty()) {
    return RefuseUsage(app,
                       "JOB|PID is required\n  your jobs on this host:  rollcall stacks --here");
  }
  // The name of a job may be a number.
  pid_t number = 0;
  if (flags.names.size() == 1 && !IsProcess(flags.names.front(), &number) &&
      (number <= 0 || app.count("--daemon") > 0)) {
    return StacksOfJob(flags);
  }
  std::vector<pid_t> pids;
  if (!ParsePids(flags.names, &pids)) return kExitBadUsage;
  const std::string of_job = FirstTyped(arguments, {"--rank", "--host", "--tenant", "--attempt"});
  if (!of_job.empty()) {
    return RefuseUsage(
        app,
        absl::StrCat(of_job, " is of a job, and ", CleanText(flags.names.front()),
                     " is a process of this host: leave out ", of_job,
                     "\n  a job with a number for a name?  rollcall stacks --daemon=HOST:PORT ",
                     of_job, "=... ", CleanText(flags.names.front())));
  }
  return StacksOfProcesses(flags, pids);
}

}  // namespace rollcall
