// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/unrecorded.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/collector/process_facts.h"
#include "agent/processes/living_threads.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/process_namespaces.h"
#include "agent/processes/rank_environment.h"
#include "agent/processes/this_host.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/digest/digest.h"

namespace rollcall {
namespace {

constexpr size_t kMostArguments = 64 << 10;
constexpr size_t kLongestKept = 1024;  // before redaction
constexpr size_t kLongestSent = 255;
constexpr size_t kDigestDigits = 16;

std::string NameToSend(const std::string& text, const Redactor& redactor) {
  return CutText(redactor.Redact(CleanText(text)), kLongestSent);
}

void AddMark(const Mark& mark, v1::UnrecordedProcess* process) {
  v1::JobMark* added = process->add_marks();
  added->set_kind(mark.kind);
  added->set_value(Sha256Hex(absl::StrCat(mark.kind, " ", mark.value)).substr(0, kDigestDigits));
  added->set_of_host(mark.of_host);
}

void SetIdentityOf(const UnrecordedRank& rank, const Redactor& redactor, v1::Identity* identity) {
  SetLaunch(rank.process.launch, identity);
  // Of a recorded process they explain a verdict; here no caller has asked for one.
  identity->clear_attempt();
  identity->clear_restarts();
  identity->clear_launch();
  identity->clear_environment();
  identity->clear_stdout_to();
  identity->clear_stderr_to();
  identity->set_job(NameToSend(rank.process.job, redactor));
  identity->set_global_rank(rank.process.rank.coordinates.rank);
  identity->set_world_size(rank.process.rank.coordinates.world_size);
  identity->set_local_rank(rank.process.rank.coordinates.local_rank);
  identity->set_started_ns(rank.started_ns);
}

v1::UnrecordedProcess ToProto(const UnrecordedRank& rank, const Redactor& redactor) {
  v1::UnrecordedProcess process;
  process.set_pid(rank.process.process.pid);
  process.set_start_time(rank.process.process.start_time);
  process.set_parent(rank.process.ppid);
  SetIdentityOf(rank, redactor, process.mutable_identity());
  process.set_name(NameToSend(rank.process.name, redactor));
  process.set_found_by(rank.found_by);
  process.set_script(NameToSend(rank.script, redactor));
  for (const Mark& mark : rank.marks) AddMark(mark, &process);
  process.set_local_world_size(rank.local_world_size);
  return process;
}

bool Preloads(absl::string_view environ) {
  return PreloadsRollcall(FindInEnviron(environ, "LD_PRELOAD")) ||
         PreloadsRollcall(FindInEnviron(environ, kPreloadVariable));
}

// Reads what the list has of it. nullopt if it is a helper.
std::optional<UnrecordedRank> Complete(UnrecordedRank rank, absl::string_view environ,
                                       const ProcStat& stat, const std::string& proc_root) {
  if (absl::StartsWith(stat.name, "pt_data_")) return std::nullopt;
  const std::string command =
      ReadProcFile(ProcPath(proc_root, stat.pid, "cmdline"), kMostArguments).value_or("");
  if (IsRuntimeHelper(command)) return std::nullopt;
  rank.script = CutText(ScriptOf(command), kLongestKept);
  rank.marks = FindMarks(
      environ,
      absl::StrCat(HostName(), " ", ReadNetworkNamespace(proc_root, std::to_string(stat.pid))));
  rank.local_world_size = LocalWorldSize(environ);
  rank.process.launch = ReadLaunchFacts(proc_root, stat.pid, HostName()).value_or(LaunchFacts());
  rank.started_ns = BeganAtSteadyNs(stat.start_time);
  // A report leaves them out, and a scan keeps the ranks.
  rank.process.directory.clear();
  rank.process.launch.environment.clear();
  return rank;
}

}  // namespace

std::optional<UnrecordedRank> DescribeUnrecorded(absl::string_view environ, const ProcStat& stat,
                                                 const std::string& proc_root) {
  UnrecordedRank rank;
  rank.process = DescribeIn(environ, stat);
  const Place& place = rank.process.rank.coordinates;
  if (place.rank < 0 || place.world_size == 1 || Preloads(environ)) return std::nullopt;
  rank.found_by = rank.process.rank.variable;
  return Complete(std::move(rank), environ, stat, proc_root);
}

std::optional<UnrecordedRank> DescribeTalker(absl::string_view environ, const ProcStat& stat,
                                             const std::string& proc_root) {
  UnrecordedRank rank;
  rank.process = DescribeIn(environ, stat);
  if (rank.process.rank.coordinates.rank >= 0 || Preloads(environ)) return std::nullopt;
  rank.found_by = "connection";
  return Complete(std::move(rank), environ, stat, proc_root);
}

v1::UnrecordedProcesses ListOf(const std::vector<UnrecordedRank>& ranks, size_t left_out,
                               const Redactor& redactor) {
  std::map<int64_t, size_t> of_user;
  for (const UnrecordedRank& rank : ranks) ++of_user[rank.payer];
  const size_t share = std::clamp<size_t>(kMostUnrecorded / std::max<size_t>(of_user.size(), 1), 1,
                                          kMostUnrecordedOfUser);
  v1::UnrecordedProcesses list;
  std::map<int64_t, size_t> taken;
  for (const UnrecordedRank& rank : ranks) {
    const bool is_full = static_cast<size_t>(list.processes_size()) == kMostUnrecorded;
    if (is_full || ++taken[rank.payer] > share) {
      ++left_out;
    } else {
      *list.add_processes() = ToProto(rank, redactor);
    }
  }
  list.set_left_out(static_cast<uint32_t>(std::min<size_t>(left_out, UINT32_MAX)));
  return list;
}

}  // namespace rollcall
