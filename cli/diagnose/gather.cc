// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/gather.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/collector/collector.h"
#include "agent/collector/redact_update.h"
#include "agent/logs/logs.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/processes/this_host.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/steady_clock.h"
#include "base/user_names.h"
#include "cli/diagnose/find.h"
#include "cli/diagnose/host_facts.h"
#include "cli/diagnose/process_look.h"
#include "cli/diagnose/ranks.h"
#include "cli/diagnose/read_each.h"
#include "cli/diagnose/take_samples.h"
#include "daemon/looks/unanswered.h"
#include "interpose/environment.h"
#include "proto/look_limits.h"

namespace rollcall {
namespace {

constexpr size_t kMostFolders = 16;                    // of segments: a process names its own
constexpr int64_t kCollectorsShareNs = 1'000'000'000;  // to begin reading segments
constexpr int64_t kFactsShareNs = 500'000'000;         // of the time for the whole look
constexpr int64_t kLogsShareNs = 200'000'000;          // likewise
constexpr int64_t kLeastApartForFactsNs = 2 * kSecond;

std::string JobName(const std::string& name) {
  JobNameBuffer job;
  CopyJobName(name.c_str(), job);
  return job;
}

class LookGatherer {
 public:
  explicit LookGatherer(const LookOptions& options)
      : options_(options),
        threads_(std::make_shared<SpareThreads>()),
        until_ns_(SteadyNs() + options.patience_ns) {}

  v1::HostLook Gather() {
    look_.set_host(HostName());
    look_.set_rollcall_version(ROLLCALL_VERSION);
    look_.set_uid(geteuid());
    look_.set_begun_ns(SteadyNs());
    Find();
    MakeCollectors();
    BeginHostFacts();
    Sample();
    AddFacts();
    AddLogs();
    TakeHostFacts();
    AddRecorded();
    for (v1::ProcessLook& process : *look_.mutable_processes()) {
      Redact(*options_.redactor, options_.arguments, process.mutable_process());
    }
    look_.set_ended_ns(SteadyNs());
    return std::move(look_);
  }

 private:
  void Tell(const std::string& text) const {
    if (options_.tell) options_.tell(text);
  }

  void AddUnseen(const std::string& text) {
    if (look_.unseen_size() < kMostUnseenOfLook) look_.add_unseen(text);
  }

  void Find() {
    Tell("looking for processes of distributed jobs");
    FindOptions wanted;
    wanted.proc_root = options_.proc_root;
    wanted.uid = options_.uid;
    wanted.pids = options_.pids;
    FoundProcesses found = FindProcesses(wanted, threads_.get());
    for (const pid_t pid : found.silent) {
      AddUnseen(absl::StrCat("process ", pid, " did not answer when it was read in /proc"));
    }
    if (found.is_cut) AddUnseen("this host has more processes than can be read in time");
    look_.set_is_whole(found.has_all_variables && IsAllReadable(found));
    const std::vector<ChosenRank> ranks = ChooseRanks(&found.processes, options_.pids, getpid());
    const std::set<std::string> wanted_jobs = KeysOfJob(found, ranks);
    for (const ChosenRank& rank : ranks) {
      const FoundProcess& process = found.processes[rank.at];
      if (!options_.job.empty() && wanted_jobs.count(BestMark(process)) == 0) continue;
      if (look_.processes_size() == kMostProcessesOfLook) {
        look_.set_left_out(look_.left_out() + 1);
        look_.set_is_whole(false);
      } else {
        *look_.add_processes() = ToProcessLook(process, rank.found_by);
      }
    }
    NameUnreadable(found);
  }

  bool IsOfJob(const FoundProcess& process) const {
    return options_.job.empty() || process.process.job == JobName(options_.job) ||
           ScriptOf(process.command) == options_.job;
  }

  // The best marks of the ranks of the wanted job: others of it may have another script, or none.
  std::set<std::string> KeysOfJob(const FoundProcesses& found,
                                  const std::vector<ChosenRank>& ranks) const {
    std::set<std::string> keys;
    for (const ChosenRank& rank : ranks) {
      const FoundProcess& process = found.processes[rank.at];
      if (IsOfJob(process)) keys.insert(BestMark(process));
    }
    return keys;
  }

  bool IsAllReadable(const FoundProcesses& found) const {
    return std::all_of(
        found.processes.begin(), found.processes.end(), [this](const FoundProcess& process) {
          const bool is_wanted =
              !options_.uid.has_value() || process.uid == static_cast<int64_t>(*options_.uid);
          return process.is_readable || IsDead(process.state) || !is_wanted;
        });
  }

  // Names the unreadable ones of the processes that the command names.
  void NameUnreadable(const FoundProcesses& found) {
    for (const FoundProcess& process : found.processes) {
      const pid_t pid = process.process.process.pid;
      const bool is_named =
          std::find(options_.pids.begin(), options_.pids.end(), pid) != options_.pids.end();
      if (!is_named || process.is_readable || process.uid < 0) continue;
      AddUnseen(absl::StrCat(
          "process ", pid, " is of user ", UserInWords(static_cast<uint32_t>(process.uid)),
          ", and the kernel shows nothing of it to you: sudo rollcall diagnose ", pid));
    }
  }

  // Their first ticks show since when ranks wait.
  void MakeCollectors() {
    const int64_t until_ns = SteadyNs() + kCollectorsShareNs;
    std::set<std::string> folders;
    for (const v1::ProcessLook& process : look_.processes()) {
      if (folders.size() == kMostFolders) break;
      if (!process.segment_folder().empty()) folders.insert(process.segment_folder());
    }
    for (const std::string& folder : folders) {
      if (SteadyNs() > until_ns) return;
      CollectorOptions options;
      options.proc_root = options_.proc_root;
      options.directory = folder;
      options.discover_directory = folder;
      options.redactor = options_.redactor;
      options.send_arguments = options_.arguments;
      options.scan_wait_ns = kSecond / 2;
      collectors_.push_back(std::make_unique<Collector>(options));
      collectors_.back()->Collect(SteadyNs(), true);
    }
  }

  void AddRecorded() {
    std::set<ProcessId> known;
    for (const v1::ProcessLook& process : look_.processes()) {
      known.insert({process.process().pid(), process.process().start_time()});
    }
    for (const std::unique_ptr<Collector>& collector : collectors_) {
      v1::Tick tick = collector->Collect(SteadyNs(), true);
      for (v1::ProcessUpdate& update : *tick.mutable_processes()) {
        const ProcessId id = {update.pid(), update.start_time()};
        if (known.count(id) == 0 || !update.identity().has_segment()) continue;
        look_.mutable_recorded()->set_now_ns(tick.now_ns());
        look_.mutable_recorded()->set_whole(true);
        *look_.mutable_recorded()->add_processes() = std::move(update);
      }
      for (const std::string& warning : collector->TakeWarnings()) AddUnseen(warning);
    }
  }

  // Returns the processes that have not ended.
  std::vector<v1::ProcessLook*> Living() {
    std::vector<v1::ProcessLook*> living;
    for (v1::ProcessLook& process : *look_.mutable_processes()) {
      if (process.found_by() != kFoundAsZombie) living.push_back(&process);
    }
    return living;
  }

  void Sample() {
    const std::vector<v1::ProcessLook*> living = Living();
    if (living.empty()) return;
    Tell(absl::StrCat("taking the stacks of ", living.size(),
                      living.size() == 1 ? " process" : " processes"));
    std::vector<ProcessId> ids;
    for (const v1::ProcessLook* process : living) {
      ids.push_back({process->process().pid(), process->process().start_time()});
    }
    SampleOptions wanted;
    wanted.proc_root = options_.proc_root;
    wanted.apart_ns = options_.apart_ns;
    wanted.until_ns = until_ns_ - kFactsShareNs - kLogsShareNs;
    wanted.at_once = options_.at_once;
    wanted.redactor = options_.redactor;
    wanted.tell = options_.tell;
    std::vector<std::vector<v1::StackSample>> samples = TakeSamples(ids, wanted);
    for (size_t i = 0; i < living.size(); ++i) {
      for (v1::StackSample& sample : samples[i]) *living[i]->add_samples() = std::move(sample);
    }
  }

  // A short look, of many hosts, leaves them out.
  void BeginHostFacts() {
    if (options_.apart_ns < kLeastApartForFactsNs) return;
    std::vector<pid_t> pids;
    for (const v1::ProcessLook* process : Living()) pids.push_back(process->process().pid());
    if (!pids.empty()) host_facts_.emplace(pids, options_.redactor);
  }

  void TakeHostFacts() {
    if (!host_facts_) return;
    std::optional<v1::HostFacts> facts =
        host_facts_->Take(After(std::clamp<int64_t>(until_ns_ - SteadyNs(), 0, kFactsShareNs)));
    if (facts) *look_.mutable_host_facts() = *std::move(facts);
  }

  void AddLogs() {
    LogOptions wanted;
    wanted.proc_root = options_.proc_root;
    wanted.patience_ns = kLogsShareNs;
    wanted.redactor = options_.redactor;
    std::vector<LogWriter> writers;
    for (const v1::ProcessLook* look : Living()) {
      const v1::ProcessUpdate& process = look->process();
      writers.push_back({{process.pid(), process.start_time()}, process.identity().uid()});
    }
    for (v1::LogEnd& log : ReadLogs(writers, wanted, threads_.get()))
      *look_.add_logs() = std::move(log);
  }

  void AddFacts() {
    std::map<pid_t, v1::ProcessUpdate> known;
    std::vector<ToRead> wanted;
    for (const v1::ProcessLook* process : Living()) {
      const v1::ProcessUpdate& update = process->process();
      wanted.push_back({update.pid(), update.identity().uid()});
      known[update.pid()] = update;
    }
    const std::function<v1::ProcessUpdate(pid_t)> read = [root = options_.proc_root,
                                                          known](pid_t pid) {
      return WithProcessFacts(root, known.at(pid));
    };
    std::map<pid_t, v1::ProcessUpdate> facts;
    const int64_t deadline_ns = MonotonicNs() + kFactsShareNs;
    for (auto& [pid, update] : ReadEach("facts", wanted, read, deadline_ns, threads_.get()).values)
      facts[pid] = std::move(update);
    for (v1::ProcessLook* process : Living()) {
      const auto answer = facts.find(process->process().pid());
      process->set_unseen(WhyUnseen(*process, answer != facts.end()));
      if (answer != facts.end()) *process->mutable_process() = std::move(answer->second);
    }
  }

  const LookOptions& options_;
  const std::shared_ptr<SpareThreads> threads_;
  const int64_t until_ns_;
  std::vector<std::unique_ptr<Collector>> collectors_;
  std::optional<HostFactsBeside> host_facts_;
  v1::HostLook look_;
};

}  // namespace

v1::HostLook GatherLook(const LookOptions& options) { return LookGatherer(options).Gather(); }

}  // namespace rollcall
