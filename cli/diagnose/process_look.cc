// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/process_look.h"

#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/collector/process_facts.h"
#include "agent/processes/this_host.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "cli/diagnose/ranks.h"

namespace rollcall {
namespace {

constexpr size_t kLongestPath = 4096;

// A line for each argument, as in a segment.
std::string CommandInLines(const std::string& command) {
  std::vector<std::string> lines = absl::StrSplit(command, '\0', absl::SkipEmpty());
  for (std::string& line : lines) line = CleanText(line);
  return absl::StrJoin(lines, "\n");
}

void SetIdentity(const FoundProcess& found, v1::Identity* identity) {
  const Place& place = found.process.rank.coordinates;
  identity->set_job(found.process.job);
  identity->set_global_rank(place.rank);
  identity->set_world_size(place.world_size);
  identity->set_local_rank(place.local_rank);
  identity->set_command(CommandInLines(found.command));
  if (found.uid >= 0) identity->set_uid(static_cast<uint32_t>(found.uid));
}

// A status of 0 is that of a good end, and stands also where the kernel does not report it.
void SetEnd(int wait_status, v1::Evidence* evidence) {
  evidence->set_exit_code(-1);
  evidence->set_liveness(wait_status == 0 ? v1::Evidence::ENDED : v1::Evidence::DIED);
  if (WIFSIGNALED(wait_status)) evidence->set_exit_signal(WTERMSIG(wait_status));
  if (wait_status != 0 && WIFEXITED(wait_status)) evidence->set_exit_code(WEXITSTATUS(wait_status));
}

// A process writes what it likes into its environment.
std::string Cleaned(const std::string& text) { return CutText(CleanText(text), kLongestPath); }

std::string SegmentFolder(const FoundProcess& found) {
  if (!found.process.directory.empty()) return found.process.directory;
  return absl::StrCat("/dev/shm/rollcall-", std::max<int64_t>(found.uid, 0));
}

}  // namespace

v1::ProcessLook ToProcessLook(const FoundProcess& found, const std::string& found_by) {
  v1::ProcessLook look;
  v1::ProcessUpdate* update = look.mutable_process();
  update->set_pid(found.process.process.pid);
  update->set_start_time(found.process.process.start_time);
  SetIdentity(found, update->mutable_identity());
  look.set_local_world_size(found.local_world_size);
  look.set_script(ScriptOf(found.command));
  look.set_parent(found.process.ppid);
  look.set_name(CleanText(found.process.name));
  look.set_found_by(found_by);
  for (const Mark& mark : found.marks) {
    v1::JobMark* added = look.add_marks();
    added->set_kind(mark.kind);
    added->set_value(mark.value);
    added->set_of_host(mark.of_host);
  }
  for (const std::string& library : found.libraries) look.add_libraries(library);
  if (found.preloads) look.set_segment_folder(Cleaned(SegmentFolder(found)));
  look.set_ras_address(found.ras_address);
  look.set_dump_pipe(Cleaned(found.dump_pipe));
  if (found_by == kFoundAsZombie) SetEnd(found.wait_status, update->mutable_evidence());
  return look;
}

v1::ProcessUpdate WithProcessFacts(const std::string& proc_root, v1::ProcessUpdate known) {
  const v1::Evidence evidence = EvidenceNow(proc_root, known.pid(), known.start_time());
  known.mutable_evidence()->MergeFrom(evidence);
  if (evidence.liveness() != v1::Evidence::ALIVE) return known;
  const auto launch = ReadLaunchFacts(proc_root, known.pid(), HostName());
  if (launch.has_value()) SetLaunch(*launch, known.mutable_identity());
  return known;
}

}  // namespace rollcall
