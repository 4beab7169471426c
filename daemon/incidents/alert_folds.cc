// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/alert_folds.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/history/history.h"
#include "daemon/history/incident_groups.h"
#include "daemon/incidents/incident_brief.h"

namespace rollcall {
namespace {

constexpr size_t kMostRows = 16;  // of a job

std::string LineOf(const v1::Incident& incident) {
  const v1::Verdict& root = incident.verdicts(0);
  return root.culprits().empty() ? "" : root.culprits(0).at();
}

// Without a place the ranks distinguish hangs.
std::string RowSignature(const v1::Incident& hang) {
  const std::string signature = SignatureOf(hang);
  const bool has_place = signature.back() != '/';
  return has_place ? signature : absl::StrCat(signature, hang.verdicts(0).culprit_ranks());
}

// "40 s", "3 min", "2 h": how long a row lasts needs no more.
std::string RoughlyInWords(int64_t ns) {
  const int64_t seconds = std::max<int64_t>(ns, 0) / kSecond;
  if (seconds < 60) return absl::StrCat(std::max<int64_t>(seconds, 1), " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min");
  return absl::StrCat(seconds / 3600, " h");
}

std::string WhatIsSame(bool same_ranks, bool same_line) {
  if (same_ranks && same_line) return ", same rank and line";
  if (same_ranks) return ", same rank";
  return same_line ? ", same line" : "";
}

}  // namespace

AlertFolds::Row* AlertFolds::FindSignature(const std::string& signature, Rows* rows) {
  const auto at = std::find_if(rows->begin(), rows->end(),
                               [&](const Row& row) { return row.signature == signature; });
  return at == rows->end() ? nullptr : &*at;
}

// A row whose newest hang lasts is kept: it may last for days.
void AlertFolds::DropOld(int64_t now_ns, Rows* rows) {
  const auto is_old = [now_ns](const Row& row) {
    return row.is_over && row.end.id().empty() && now_ns - row.last_ns >= kRepeatWithinNs;
  };
  rows->erase(std::remove_if(rows->begin(), rows->end(), is_old), rows->end());
  if (rows->size() > kMostRows) rows->erase(rows->begin());
}

AlertFolds::Row* AlertFolds::FindNewest(const v1::Incident& hang) {
  const auto job = jobs_.find(ReadJobKey(hang));
  if (job == jobs_.end()) return nullptr;
  const auto row = std::find_if(job->second.begin(), job->second.end(),
                                [&](const Row& one) { return one.newest == hang.id(); });
  return row == job->second.end() ? nullptr : &*row;
}

// A hang that an earlier daemon knew may be in the middle of its row.
AlertFolds::Row AlertFolds::Begin(const v1::Incident& hang, const std::string& signature,
                                  int64_t now_ns) {
  const v1::Repeat& repeat = hang.repeat();
  Row row;
  row.signature = signature;
  row.ranks = hang.verdicts(0).culprit_ranks();
  row.line = LineOf(hang);
  row.first = repeat.first().empty() ? hang.id() : repeat.first();
  row.newest = hang.id();
  row.thread = repeat.thread().empty() ? hang.id() : repeat.thread();
  row.thread_opened_at = repeat.thread().empty() ? hang.opened_at() : repeat.thread_opened_at();
  row.number = std::max(repeat.number(), 1);
  row.first_ns = row.last_ns = now_ns;
  return row;
}

AlertFolds::Place AlertFolds::Add(const v1::Incident& hang, int64_t now_ns) {
  if (hang.verdicts().empty()) return {};
  Rows* const rows = &jobs_[ReadJobKey(hang)];
  DropOld(now_ns, rows);
  const std::string signature = RowSignature(hang), line = LineOf(hang);
  Row* row = FindSignature(signature, rows);
  if (row == nullptr) {
    rows->push_back(Begin(hang, signature, now_ns));
    return {hang.repeat(), ""};
  }
  const std::string& ranks = hang.verdicts(0).culprit_ranks();
  const std::string same =
      WhatIsSame(!ranks.empty() && ranks == row->ranks, !line.empty() && line == row->line);
  const std::string within = absl::StrCat(" in ", RoughlyInWords(now_ns - row->first_ns), same);
  const bool is_untold = !row->is_told || (row->is_over && row->end.id().empty());
  if (is_untold) {
    row->thread = hang.id();
    row->thread_opened_at = hang.opened_at();
  }
  if (row->newest != hang.id()) ++row->number;
  row->is_told = true;
  row->is_over = false;
  row->end = v1::Incident();
  row->newest = hang.id();
  row->last_ns = now_ns;
  row->ranks = ranks;
  row->line = line;
  Place place;
  place.repeat.set_first(row->first);
  place.repeat.set_number(row->number);
  place.repeat.set_sentence(absl::StrCat(OrdinalInWords(row->number), " time", within));
  place.first_words = absl::StrCat(row->number, " times", within);
  if (row->thread == hang.id()) return place;
  place.repeat.set_thread(row->thread);
  *place.repeat.mutable_thread_opened_at() = row->thread_opened_at;
  return place;
}

void AlertFolds::SetTold(const v1::Incident& hang, bool told) {
  Row* row = FindNewest(hang);
  if (row != nullptr && row->thread == hang.id()) row->is_told = told;
}

bool AlertFolds::EndsNow(const v1::Incident& hang, const Ending& ending, int64_t now_ns) {
  Row* row = FindNewest(hang);
  if (row == nullptr) return true;
  row->last_ns = now_ns;
  row->is_over = true;
  const bool goes_on = hang.state() == "resolved";
  const bool may_restart = ending.may_restart && !hang.abandoned();
  if (!row->is_told || (!goes_on && !may_restart)) return true;
  const bool flaps = ending.is_last || row->number > 1 || jobs_[ReadJobKey(hang)].size() > 1;
  row->end = WithoutStacks(hang);
  row->end.set_id(row->thread);
  *row->end.mutable_opened_at() = row->thread_opened_at;
  if (row->thread != hang.id()) row->end.mutable_repeat()->set_newest(hang.id());
  row->end_due_ns = now_ns + (!goes_on ? kRestartsWithinNs : flaps ? kCalmNs : kFirstCalmNs);
  return false;
}

void AlertFolds::GoOn(const JobKey& attempt, int64_t now_ns) {
  const auto job = jobs_.find(attempt);
  if (job == jobs_.end()) return;
  for (Row& row : job->second) {
    const bool waits = !row.end.id().empty() && row.end.state() == "ended";
    if (!waits || row.end.attempt() >= attempt.attempt) continue;
    row.end.set_state("resolved");
    row.end.set_went_on_in(attempt.attempt);
    row.end_due_ns = now_ns;
  }
}

std::vector<v1::Incident> AlertFolds::TakeEnds(int64_t now_ns) {
  std::vector<v1::Incident> ends;
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    for (Row& row : job->second) {
      if (row.end.id().empty() || now_ns < row.end_due_ns) continue;
      ends.push_back(std::exchange(row.end, v1::Incident()));
    }
    DropOld(now_ns, &job->second);
    job = job->second.empty() ? jobs_.erase(job) : std::next(job);
  }
  return ends;
}

}  // namespace rollcall
