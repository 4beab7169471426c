// SPDX-License-Identifier: Apache-2.0
// Events of Kubernetes about the pods of culprits, by its core API:
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/ has the limits.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clean_text.h"
#include "base/digest/digest.h"
#include "daemon/alerts/alert_messages.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPods = 8;
constexpr size_t kLongestEventMessage = 1000;
constexpr size_t kLongestNamespace = 63;
constexpr size_t kLongestName = 253;
constexpr size_t kNameInEvent = 200;  // of a pod, before the digits
constexpr int kConflict = 409;        // there is an Event of this name: an earlier try came through

struct Pod {
  std::string space, name;
  std::string uid;  // empty if unknown
};

// Whether the text can be a part of the path of a request. A process names its pod itself.
bool IsNameOfObject(absl::string_view text, size_t most, bool with_dots) {
  if (text.empty() || text.size() > most) return false;
  const auto is_plain = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  return is_plain(text.front()) && is_plain(text.back()) && !absl::StrContains(text, "..") &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_plain(c) || c == '-' || (with_dots && c == '.'); });
}

// A process names its pod itself. So only pods of its tenant, which is their namespace: else the
// author of a pod could put Events on pods of others.
bool IsOfTenant(const std::string& space, const v1::Incident& incident) {
  if (space == incident.tenant()) return true;
  static std::once_flag said;
  std::call_once(said, [&] {
    spdlog::warn(
        "creating no Event for the pods of job {}: they report the namespace {}, but the job's tenant "
        "is {}, and Events need the namespace as tenant; logged once",
        CleanText(incident.job()), space, CleanText(incident.tenant()));
  });
  return false;
}

// Returns the pods of the root cause's culprits, each once.
std::vector<Pod> PodsOf(const v1::Incident& incident) {
  std::vector<Pod> pods;
  if (incident.verdicts().empty()) return pods;
  for (const v1::Culprit& culprit : incident.verdicts(0).culprits()) {
    const std::vector<std::string> parts = absl::StrSplit(culprit.pod(), '/');
    if (parts.size() != 2 || !IsNameOfObject(parts[0], kLongestNamespace, false) ||
        !IsNameOfObject(parts[1], kLongestName, true) || !IsOfTenant(parts[0], incident)) {
      continue;
    }
    const bool is_known = std::any_of(pods.begin(), pods.end(), [&parts](const Pod& pod) {
      return pod.space == parts[0] && pod.name == parts[1];
    });
    if (!is_known && pods.size() < kMostPods) {
      pods.push_back({parts[0], parts[1], culprit.pod_uid()});
    }
  }
  return pods;
}

const char* Reason(AlertEvent event) {
  if (event == AlertEvent::kResolved) return "JobHangEnded";
  if (event == AlertEvent::kReminder) return "JobStillHangs";
  return event == AlertEvent::kUpdated ? "JobHangCorrected" : "JobHangs";
}

std::string EventMessage(const AlertValues& values) {
  std::string text = absl::StrCat(ValueOf(values, "headline"), " (job ", ValueOf(values, "job"),
                                  ", incident ", ValueOf(values, "incident"));
  const std::string link = ValueOf(values, "link");
  if (!link.empty()) absl::StrAppend(&text, ", ", link);
  return OneLine(absl::StrCat(text, ")"), kLongestEventMessage);
}

// With the uid, `kubectl describe pod` lists the Event.
Json Reference(const Pod& pod) {
  Json reference = {
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod.name}, {"namespace", pod.space}};
  if (!pod.uid.empty()) reference["uid"] = pod.uid;
  return reference;
}

Json MakeEvent(const Pod& pod, const AlertValues& values, const AlertMessage& message) {
  const std::string now = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  std::string beginning = pod.name.substr(0, kNameInEvent);
  while (!absl::ascii_isalnum(beginning.back())) beginning.pop_back();
  // The digits are the same for each try to deliver this alert.
  const std::string digits =
      Sha256Hex(absl::StrCat(AlertKey(message), " ", pod.name)).substr(0, 16);
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata",
           {{"name", absl::StrCat(beginning, ".rollcall-", digits)}, {"namespace", pod.space}}},
          {"involvedObject", Reference(pod)},
          {"type", message.event == AlertEvent::kResolved ? "Normal" : "Warning"},
          {"reason", Reason(message.event)},
          {"message", EventMessage(values)},
          {"source", {{"component", "rollcall"}}},
          {"firstTimestamp", now},
          {"lastTimestamp", now},
          {"count", 1}};
}

}  // namespace

absl::StatusOr<std::vector<AlertRequest>> KubernetesRequests(const std::string& url,
                                                             const std::string& token,
                                                             const AlertValues& values,
                                                             const AlertMessage& message) {
  const bool is_token = !token.empty() && std::all_of(token.begin(), token.end(),
                                                      [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_token) {
    return absl::InvalidArgumentError("the file holds no service account token");
  }
  std::vector<AlertRequest> requests;
  // Events are about pods, not about who looks after them.
  if (message.event == AlertEvent::kAcknowledged) return requests;
  for (const Pod& pod : PodsOf(message.incident)) {
    AlertRequest request;
    request.url =
        absl::StrCat(absl::StripSuffix(url, "/"), "/api/v1/namespaces/", pod.space, "/events");
    request.body = DumpJson(MakeEvent(pod, values, message));
    request.authorization = absl::StrCat("Bearer ", token);
    request.done_before = kConflict;
    requests.push_back(request);
  }
  return requests;
}

}  // namespace rollcall
