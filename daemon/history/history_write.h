// SPDX-License-Identifier: Apache-2.0
// A write of the history as a message, for a history that gets it later. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/history/history.h"

namespace rollcall::v1 {
class HistoryWrite;
}

namespace rollcall {

v1::HistoryWrite WriteOfIncident(const v1::Incident& incident);
v1::HistoryWrite WriteOfAlert(const AlertRow& alert);
v1::HistoryWrite WriteOfAlertMark(const std::string& incident, int32_t sequence,
                                  const std::string& receiver);
v1::HistoryWrite WriteOfHosts(const JobKey& job, const std::vector<std::string>& hosts,
                              int64_t seen_ns);
v1::HistoryWrite WriteOfForgottenHosts(const JobKey& job);
v1::HistoryWrite WriteOfAttempts(const std::map<JobKey, AttemptFacts>& attempts, int64_t seen_ns);
v1::HistoryWrite WriteOfForgottenAttempt(const JobKey& job);
v1::HistoryWrite WriteOfAction(const ActionRow& action);
v1::HistoryWrite WriteOfSilence(const v1::Silence& silence);

// The write is about this job, and its daemon owns the job by this token; 0 or less: it could not
// ask.
void SetFence(const JobId& job, int64_t token, v1::HistoryWrite* write);

// Makes the write, as History::Fenced() if it has a fence. A write of a later release, which this
// one does not know, is kInvalidArgument.
absl::Status Apply(const v1::HistoryWrite& write, History* history);

}  // namespace rollcall
