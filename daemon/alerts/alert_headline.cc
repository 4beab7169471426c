// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_headline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/report/incident_words.h"
#include "daemon/words/terms.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int64_t kSameDayNs = 12 * 3600 * kSecond;

// "16,384"
std::string WithCommas(int32_t number) {
  std::string digits = absl::StrCat(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

// "19:53 UTC", with the day if that was long ago: "2026-11-27 19:53 UTC".
std::string Clock(const google::protobuf::Timestamp& time, int64_t ago_ns) {
  const std::string words = TimeInWords(time);  // "2026-11-20 19:30:00 UTC"
  if (words.size() < 19) return "";
  return absl::StrCat(ago_ns < kSameDayNs ? "" : words.substr(0, 11), words.substr(11, 5), " UTC");
}

// A job that failed no longer stands still.
bool HasFailed(const v1::Verdict& verdict) {
  const bool has_ended = verdict.cause() == "rank_died" || verdict.cause() == "rank_exited";
  return has_ended && verdict.waiting_total() == 0 && verdict.waiting_ranks().empty();
}

// "16,384 GPUs idle since 19:53 UTC"
std::string Extent(const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  const std::string clock = Clock(HungSince(incident), HungNs(message));
  const std::string since = clock.empty() ? "" : absl::StrCat("since ", clock);
  const int32_t idle = IdleRanks(incident);
  if (idle == 0) return since;
  const std::string unit = IdleUnit(incident.verdicts(0));
  return absl::StrCat(WithCommas(idle), " ", idle == 1 ? unit.substr(0, unit.size() - 1) : unit,
                      " idle", since.empty() ? "" : " ", since);
}

// "gpt-16k hung: 16,384 GPUs idle since 19:53 UTC: ".
std::string Beginning(const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  const v1::Verdict verdict = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
  if (HasFailed(verdict)) return absl::StrCat(incident.job(), " failed: ");
  const bool comes_back = incident.repeat().number() > 1;
  std::string words = absl::StrCat(incident.job(), " hung");
  if (comes_back) absl::StrAppend(&words, " again, ", incident.repeat().sentence());
  if (message.event == AlertEvent::kReminder) {
    words = absl::StrCat(incident.job(), " still hangs after ", DurationInWords(HungNs(message)),
                         ", and is not acknowledged");
  }
  if (message.event == AlertEvent::kUpdated && !comes_back) {
    absl::StrAppend(&words, ", correction of the first message about ", incident.id());
  }
  const std::string extent = Extent(message);
  return absl::StrCat(words, ": ", extent, extent.empty() ? "" : ": ");
}

// A job that was ended while it hung is not over well.
std::string EndInWords(const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  const std::string lasted = DurationInWords(HungNs(message));
  const v1::Repeat& repeat = incident.repeat();
  const std::string times =
      repeat.number() > 1 ? absl::StrCat(" (", repeat.sentence(), ")") : std::string();
  if (incident.state() != "resolved") {
    return absl::StrCat(incident.job(), ": the job ended while it hung", times, ", after ", lasted,
                        ": ");
  }
  if (!repeat.later().empty()) {
    return absl::StrCat(incident.job(), ": this hang is over after ", lasted,
                        ", but the job has hung again (", repeat.later(), "): ");
  }
  const std::string where =
      incident.has_went_on_in() ? absl::StrCat(" in attempt ", incident.went_on_in()) : "";
  return absl::StrCat(incident.job(), ": resolved, the job goes on", where, times, " after ",
                      lasted, ": ");
}

std::string AcknowledgedInWords(const v1::Incident& incident) {
  if (!incident.has_acknowledged()) {
    return absl::StrCat(incident.job(), ": no operator takes care of ", incident.id(),
                        " any more: ");
  }
  return absl::StrCat(incident.job(), ": ", incident.acknowledged().who(), " takes care of ",
                      incident.id(), ": ");
}

}  // namespace

std::string HeadlineInWords(const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  const std::string summary = incident.verdicts().empty() ? "" : incident.verdicts(0).summary();
  switch (message.event) {
    case AlertEvent::kResolved:
      return EndInWords(message) + summary;
    case AlertEvent::kAcknowledged:
      return AcknowledgedInWords(incident) + summary;
    case AlertEvent::kConfirmed:
    case AlertEvent::kUpdated:
    case AlertEvent::kAnnotated:
    case AlertEvent::kReminder:
      break;
  }
  return Beginning(message) + summary;
}

std::string NoteInWords(const AlertMessage& message) {
  if (!message.incident.repeat().holds_back() || message.event == AlertEvent::kResolved) return "";
  return "further alerts of this job are held back: one message within the hour will list them";
}

int32_t IdleRanks(const v1::Incident& incident) {
  if (incident.ranks() > 0 || incident.verdicts().empty()) return incident.ranks();
  const v1::Verdict& root = incident.verdicts(0);
  return std::max(root.waiting_total(), root.waiting_ranks_size()) +
         std::max(root.culprits_total(), root.culprits_size());
}

const char* IdleUnit(const v1::Verdict& verdict) {
  const bool has_gpu = std::any_of(
      verdict.culprits().begin(), verdict.culprits().end(),
      [](const v1::Culprit& one) { return one.device() >= 0 || !one.gpu_uuid().empty(); });
  return has_gpu ? "GPUs" : "ranks";
}

const google::protobuf::Timestamp& HungSince(const v1::Incident& incident) {
  return incident.has_waits_since() ? incident.waits_since() : incident.opened_at();
}

int64_t HungNs(const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  const int64_t since_ns = NsOf(HungSince(incident));
  const int64_t until_ns = incident.has_closed_at()
                               ? NsOf(incident.closed_at())
                               : std::max(message.made_ns, NsOf(incident.confirmed_at()));
  return std::max<int64_t>(until_ns - since_ns, 0);
}

}  // namespace rollcall
