// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_write.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/model/incident_id.h"

namespace rollcall {
namespace {

void Fill(const JobKey& key, v1::HistoryWrite::Job* job) {
  job->set_tenant(key.tenant);
  job->set_job(key.job);
  job->set_attempt(key.attempt);
}

JobId JobOfAll(const v1::HistoryWrite::Attempts& attempts) {
  if (attempts.attempts().empty()) return {};
  const JobId first = KeyOf(attempts.attempts(0).job());
  for (const v1::HistoryWrite::Attempt& attempt : attempts.attempts()) {
    if (!(JobId(KeyOf(attempt.job())) == first)) return {};
  }
  return first;
}

}  // namespace

v1::HistoryWrite WriteOfIncident(v1::Incident incident) {
  v1::HistoryWrite write;
  *write.mutable_incident() = std::move(incident);
  return write;
}

v1::HistoryWrite WriteOfAlert(const AlertRow& alert) {
  v1::HistoryWrite write;
  v1::HistoryWrite::Alert* const kept = write.mutable_alert();
  kept->set_incident(alert.incident);
  kept->set_sequence(alert.sequence);
  kept->set_kind(alert.kind);
  kept->set_made_ns(alert.made_ns);
  *kept->mutable_body() = alert.body;
  const bool is_for_later = !alert.sent && !IsKnownBefore(alert.kind);
  kept->set_sent(alert.sent || is_for_later);
  kept->set_unsent(is_for_later);
  return write;
}

v1::HistoryWrite WriteOfAlertMark(const std::string& incident, int32_t sequence,
                                  const std::string& receiver) {
  v1::HistoryWrite write;
  write.mutable_alert_mark()->set_incident(incident);
  write.mutable_alert_mark()->set_sequence(sequence);
  write.mutable_alert_mark()->set_receiver(receiver);
  return write;
}

v1::HistoryWrite WriteOfHosts(const JobKey& job, const std::vector<std::string>& hosts,
                              int64_t seen_ns) {
  v1::HistoryWrite write;
  Fill(job, write.mutable_hosts()->mutable_job());
  for (const std::string& host : hosts) write.mutable_hosts()->add_hosts(host);
  write.mutable_hosts()->set_seen_ns(seen_ns);
  return write;
}

v1::HistoryWrite WriteOfForgottenHosts(const JobKey& job) {
  v1::HistoryWrite write;
  Fill(job, write.mutable_forget_hosts());
  return write;
}

v1::HistoryWrite WriteOfAttempts(const std::map<JobKey, AttemptFacts>& attempts, int64_t seen_ns) {
  v1::HistoryWrite write;
  write.mutable_attempts()->set_seen_ns(seen_ns);
  for (const auto& [job, facts] : attempts) {
    v1::HistoryWrite::Attempt* const attempt = write.mutable_attempts()->add_attempts();
    Fill(job, attempt->mutable_job());
    attempt->set_world_size(facts.world_size);
    attempt->set_restarts(facts.restarts);
    attempt->set_launch(facts.launch);
    attempt->set_has_twin(facts.has_twin);
    for (const auto& [process, rank] : facts.members) {
      v1::HistoryWrite::Member* const member = attempt->add_members();
      member->set_host(process.host);
      member->set_pid(process.pid);
      member->set_start_time(process.start_time);
      member->set_rank(rank);
    }
  }
  return write;
}

v1::HistoryWrite WriteOfForgottenAttempt(const JobKey& job) {
  v1::HistoryWrite write;
  Fill(job, write.mutable_forget_attempt());
  return write;
}

v1::HistoryWrite WriteOfAction(const ActionRow& action) {
  v1::HistoryWrite write;
  write.mutable_action()->set_at_ns(action.at_ns);
  write.mutable_action()->set_who(action.who);
  write.mutable_action()->set_action(action.action);
  write.mutable_action()->set_object(action.object);
  write.mutable_action()->set_peer(action.peer);
  return write;
}

v1::HistoryWrite WriteOfSilence(const v1::Silence& silence) {
  v1::HistoryWrite write;
  *write.mutable_silence() = silence;
  return write;
}

void SetFence(const JobId& job, int64_t token, v1::HistoryWrite* write) {
  write->mutable_job()->set_tenant(job.tenant);
  write->mutable_job()->set_job(job.job);
  write->set_token(token);
}

bool IsKnownBefore(const std::string& kind) {
  return std::find(std::begin(kKindsKnownBefore), std::end(kKindsKnownBefore), kind) !=
         std::end(kKindsKnownBefore);
}

bool IsSent(const v1::HistoryWrite::Alert& alert) { return alert.sent() && !alert.unsent(); }

JobKey KeyOf(const v1::HistoryWrite::Job& job) {
  return JobKey(JobId{job.tenant(), job.job()}, job.attempt());
}

JobId JobOf(const v1::HistoryWrite& write) {
  switch (write.write_case()) {
    case v1::HistoryWrite::kIncident:
      return ReadJobKey(write.incident());
    case v1::HistoryWrite::kAlert:
      return JobOfIncidentId(write.alert().incident());
    case v1::HistoryWrite::kAlertMark:
      return JobOfIncidentId(write.alert_mark().incident());
    case v1::HistoryWrite::kHosts:
      return KeyOf(write.hosts().job());
    case v1::HistoryWrite::kForgetHosts:
      return KeyOf(write.forget_hosts());
    case v1::HistoryWrite::kAttempts:
      return JobOfAll(write.attempts());
    case v1::HistoryWrite::kForgetAttempt:
      return KeyOf(write.forget_attempt());
    case v1::HistoryWrite::kAction:
    case v1::HistoryWrite::kSilence:
    case v1::HistoryWrite::WRITE_NOT_SET:
      break;
  }
  return {};
}

std::vector<v1::HistoryWrite> ByJob(v1::HistoryWrite write) {
  if (!write.has_attempts()) return {std::move(write)};
  std::map<JobId, v1::HistoryWrite> parts;
  for (v1::HistoryWrite::Attempt& attempt : *write.mutable_attempts()->mutable_attempts()) {
    v1::HistoryWrite::Attempts* const part = parts[KeyOf(attempt.job())].mutable_attempts();
    part->set_seen_ns(write.attempts().seen_ns());
    *part->add_attempts() = std::move(attempt);
  }
  std::vector<v1::HistoryWrite> writes;
  for (auto& [job, part] : parts) writes.push_back(std::move(part));
  return writes;
}

}  // namespace rollcall
