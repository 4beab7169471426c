// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_write.h"

#include "daemon/history/alert_kinds.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {
namespace {

void Fill(const JobKey& key, v1::HistoryWrite::Job* job) {
  job->set_tenant(key.tenant);
  job->set_job(key.job);
  job->set_attempt(key.attempt);
}

JobKey KeyOf(const v1::HistoryWrite::Job& job) {
  return JobKey(JobId{job.tenant(), job.job()}, job.attempt());
}

AlertRow AlertOf(const v1::HistoryWrite::Alert& alert) {
  AlertRow row;
  row.incident = alert.incident();
  row.sequence = alert.sequence();
  row.kind = alert.kind();
  row.made_ns = alert.made_ns();
  row.body = alert.body();
  row.sent = alert.sent() && !alert.unsent();
  return row;
}

AttemptFacts FactsOf(const v1::HistoryWrite::Attempt& attempt) {
  AttemptFacts facts = {
      attempt.world_size(), attempt.restarts(), attempt.launch(), attempt.has_twin(), {}};
  for (const v1::HistoryWrite::Member& member : attempt.members()) {
    facts.members.push_back({{member.host(), member.pid(), member.start_time()}, member.rank()});
  }
  return facts;
}

absl::Status ApplyAttempts(const v1::HistoryWrite::Attempts& attempts, History* history) {
  std::map<JobKey, AttemptFacts> facts;
  for (const v1::HistoryWrite::Attempt& attempt : attempts.attempts()) {
    facts[KeyOf(attempt.job())] = FactsOf(attempt);
  }
  return history->SaveAttempts(facts, attempts.seen_ns());
}

absl::Status ApplyUnfenced(const v1::HistoryWrite& write, History* history) {
  switch (write.write_case()) {
    case v1::HistoryWrite::kIncident:
      return history->Save(write.incident());
    case v1::HistoryWrite::kAlert:
      return history->SaveAlert(AlertOf(write.alert()));
    case v1::HistoryWrite::kAlertMark:
      return history->MarkAlert(write.alert_mark().incident(), write.alert_mark().sequence(),
                                write.alert_mark().receiver());
    case v1::HistoryWrite::kHosts:
      return history->SaveHosts(KeyOf(write.hosts().job()),
                                {write.hosts().hosts().begin(), write.hosts().hosts().end()},
                                write.hosts().seen_ns());
    case v1::HistoryWrite::kForgetHosts:
      return history->ForgetHosts(KeyOf(write.forget_hosts()));
    case v1::HistoryWrite::kAttempts:
      return ApplyAttempts(write.attempts(), history);
    case v1::HistoryWrite::kForgetAttempt:
      return history->ForgetAttempt(KeyOf(write.forget_attempt()));
    case v1::HistoryWrite::kAction:
      return history->SaveAction({write.action().at_ns(), write.action().who(),
                                  write.action().action(), write.action().object(),
                                  write.action().peer()});
    case v1::HistoryWrite::kSilence:
      return history->SaveSilence(write.silence());
    case v1::HistoryWrite::WRITE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a write that this release does not support");
}

}  // namespace

v1::HistoryWrite WriteOfIncident(const v1::Incident& incident) {
  v1::HistoryWrite write;
  *write.mutable_incident() = incident;
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

absl::Status Apply(const v1::HistoryWrite& write, History* history) {
  if (!write.has_job()) return ApplyUnfenced(write, history);
  return history->Fenced({write.job().tenant(), write.job().job()}, write.token(),
                         [&] { return ApplyUnfenced(write, history); });
}

}  // namespace rollcall
