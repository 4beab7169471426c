// SPDX-License-Identifier: Apache-2.0
// The writes of the history, as messages that History::Apply() makes: now, or from a spool later.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/history/history.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

// Adds the incident, or replaces the one with its id.
v1::HistoryWrite WriteOfIncident(v1::Incident incident);
// Adds the alert, or replaces the one with its incident and sequence. Leaves out `receivers`.
v1::HistoryWrite WriteOfAlert(const AlertRow& alert);
// Records that the alert was delivered to one receiver; an empty receiver means all, or given up.
v1::HistoryWrite WriteOfAlertMark(const std::string& incident, int32_t sequence,
                                  const std::string& receiver);
// Records that the job has processes on these hosts.
v1::HistoryWrite WriteOfHosts(const JobKey& job, const std::vector<std::string>& hosts,
                              int64_t seen_ns);
v1::HistoryWrite WriteOfForgottenHosts(const JobKey& job);
// Records the attempts, and adds their members to those recorded before.
v1::HistoryWrite WriteOfAttempts(const std::map<JobKey, AttemptFacts>& attempts, int64_t seen_ns);
v1::HistoryWrite WriteOfForgottenAttempt(const JobKey& job);
// Rows are kept for 180 days, or less if there are very many.
v1::HistoryWrite WriteOfAction(const ActionRow& action);
// Adds the silence, or replaces the one with its id. Kept for a month after its end.
v1::HistoryWrite WriteOfSilence(const v1::Silence& silence);

// The job that the write is about; without a name if it is about no job, or several.
JobId JobOf(const v1::HistoryWrite& write);
JobKey KeyOf(const v1::HistoryWrite::Job& job);

// Splits a write about several jobs into one for each.
std::vector<v1::HistoryWrite> ByJob(v1::HistoryWrite write);

// The write is about this job, and its daemon owns the job by this token; 0 or less: it could not
// ask.
void SetFence(const JobId& job, int64_t token, v1::HistoryWrite* write);

// The kinds of AlertRow::kind that the release before sends: during an upgrade it reads what this
// one has stored, and it would send an unsent alert of another kind as a new hang. Add a kind one
// release after its birth.
inline constexpr const char* kKindsKnownBefore[] = {"confirmed", "updated", "resolved"};
bool IsKnownBefore(const std::string& kind);

// The column `sent` of the table `outbox`. The release before takes all but 0 as sent.
inline constexpr int64_t kAlertUnsent = 0;
inline constexpr int64_t kAlertSent = 1;
inline constexpr int64_t kAlertUnsentForLaterReleases = 2;

// Whether the alert was delivered. The release before this one takes an alert that it does not know
// as delivered, although the write says otherwise.
bool IsSent(const v1::HistoryWrite::Alert& alert);

}  // namespace rollcall
