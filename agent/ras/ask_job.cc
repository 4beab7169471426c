// SPDX-License-Identifier: Apache-2.0
#include "agent/ras/ask_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"
#include "agent/ras/nccl_release.h"
#include "agent/ras/ras_listener.h"
#include "base/clean_text.h"
#include "base/result_in_time.h"

namespace rollcall {
namespace {

constexpr size_t kMostAddressBytes = 256;
constexpr int64_t kToReadProcNs = 2'000'000'000;

// Returns the environ of its first process; empty if it cannot be read.
std::string EnvironOf(const RasQuestion& question) {
  if (question.pids.empty()) return "";
  return ReadProcFile(ProcPath(question.proc_root, question.pids.front(), "environ"),
                      kMaxEnvironBytes)
      .value_or("");
}

// Why the job is not asked; empty if it is. `block`: environ of its first process.
std::string Objection(const RasQuestion& question, const std::string& block) {
  if (question.pids.empty()) return "no process of the job uses NCCL";
  if (question.use == RasUse::kNever) return "it was not asked: --ras=never";
  if (FindInEnviron(block, "NCCL_RAS_ENABLE") == "0")
    return "it is switched off: NCCL_RAS_ENABLE=0";
  if (question.use == RasUse::kAlways) return "";
  for (const pid_t pid : question.pids) {
    const std::string risk = RiskOfAskingRas(ReadNcclVersion(question.proc_root, pid));
    if (!risk.empty())
      return absl::StrCat("it was not asked, because ", risk, ": ", question.insistence);
  }
  if (question.changes_communicators)
    return RefusalWhileCommunicatorsChange(question.insistence).error();
  return "";
}

}  // namespace

v1::RasAnswer RefusalWhileCommunicatorsChange(const std::string& insistence) {
  v1::RasAnswer answer;
  answer.set_error(absl::StrCat(
      "it was not asked, because a rank may be creating or ending a communicator, and a question could end "
      "the job then (github.com/NVIDIA/nccl/issues/2346): ",
      insistence));
  return answer;
}

v1::RasAnswer AskRasOfJob(const RasQuestion& question) {
  v1::RasAnswer answer;
  for (const pid_t pid : question.pids) answer.add_asked_for(pid);
  const std::string block = EnvironOf(question);
  const std::string address = question.address.value_or(
      std::string(FindInEnviron(block, "NCCL_RAS_ADDR").substr(0, kMostAddressBytes)));
  answer.set_address(CleanText(address));
  if (std::string objection = Objection(question, block); !objection.empty()) {
    answer.set_error(std::move(objection));
    return answer;
  }
  const absl::StatusOr<RasListener> listener =
      FindRasListener(question.proc_root, address, question.pids);
  if (!listener.ok()) {
    answer.set_error(std::string(listener.status().message()));
    return answer;
  }
  absl::StatusOr<RasText> text = AskRasAt(listener->at, question.limits);
  if (!text.ok()) {
    answer.set_error(absl::StrCat("port ", listener->at.port, ": ", text.status().message()));
    return answer;
  }
  answer.set_text(std::move(text->text));
  if (text->cut) {
    answer.set_error(absl::StrCat("its answer was cut after ", answer.text().size(),
                                  " bytes: the rest is unknown"));
  }
  return answer;
}

v1::RasAnswer AskRasInTime(const RasQuestion& question) {
  ResultInTime<v1::RasAnswer> asked([question] { return AskRasOfJob(question); });
  std::optional<v1::RasAnswer> answer = asked.Take(After(question.limits.total_ns + kToReadProcNs));
  if (answer) return *std::move(answer);
  v1::RasAnswer late;
  late.set_error("a process of the job blocks each program that reads it in /proc");
  return late;
}

}  // namespace rollcall
