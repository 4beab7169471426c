// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/silences.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "daemon/model/cause_name.h"
#include "proto/timestamps.h"
#include "security/redact.h"
#include "security/shown_text.h"

namespace rollcall {
namespace {

constexpr size_t kShareOfSilences = 3;  // of a tenant, times what is left

bool FitsPattern(const std::string& pattern, const std::string& name) {
  return pattern.empty() || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool FitsHost(const std::string& pattern, const v1::Verdict& root) {
  const auto fits = [&pattern](const std::string& host) { return FitsPattern(pattern, host); };
  return pattern.empty() ||
         std::any_of(root.culprits().begin(), root.culprits().end(),
                     [&fits](const v1::Culprit& culprit) { return fits(culprit.host()); }) ||
         std::any_of(root.other_culprit_hosts().begin(), root.other_culprit_hosts().end(), fits);
}

bool HasEnded(const v1::Silence& silence, int64_t now_ns) {
  return NsOf(silence.until()) <= now_ns;
}

// A silence of all tenants is for those who may act on all.
bool IsFor(const Tenants& tenants, const v1::Silence& silence) {
  return silence.tenant().empty() ? tenants.AreAll() : tenants.Has(silence.tenant());
}

// A word that no incident can have would hold back nothing, and its author would rely on it.
absl::Status CheckWords(const v1::Silence& wanted) {
  if (!wanted.cause().empty()) {
    const absl::Status cause = CheckCauseName(wanted.cause());
    if (!cause.ok()) return cause;
  }
  for (const std::string& word : {wanted.tenant(), wanted.job(), wanted.host()}) {
    if (word.size() <= kMostWordBytes) continue;
    return absl::OutOfRangeError(absl::StrCat("a tenant, job or host of a silence has at most ",
                                              kMostWordBytes, " bytes; one has ", word.size()));
  }
  if (wanted.tenant().find('*') != std::string::npos) {
    return absl::InvalidArgumentError(
        "a tenant is a whole name; without one the silence is for all tenants");
  }
  return absl::OkStatus();
}

absl::Status Check(const v1::Silence& wanted, int64_t seconds, const Tenants& tenants) {
  if (wanted.job().empty() && wanted.host().empty() && wanted.cause().empty()) {
    return absl::InvalidArgumentError(
        "a silence needs a job, a host or a cause; the job * is all jobs");
  }
  if (seconds < kShortestSilenceSeconds || seconds > kLongestSilenceSeconds) {
    return absl::InvalidArgumentError("a silence lasts from 1m to 720h (30 days)");
  }
  if (wanted.comment().size() > kMostCommentBytes) {
    return absl::OutOfRangeError(absl::StrCat("this comment has ", wanted.comment().size(),
                                              " bytes; a comment has at most ", kMostCommentBytes));
  }
  const absl::Status words = CheckWords(wanted);
  if (!words.ok()) return words;
  if (IsFor(tenants, wanted)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      wanted.tenant().empty()
          ? absl::StrCat("you may act for some tenants only; name one, such as ",
                         tenants.names().empty() ? "default" : tenants.names().front())
          : absl::StrCat("you may not act for the tenant ", wanted.tenant()));
}

// Without spaces around its words, and with the tenant of somebody who has but one.
v1::Silence InFull(v1::Silence wanted, const Tenants& tenants) {
  for (std::string* word : {wanted.mutable_tenant(), wanted.mutable_job(), wanted.mutable_host(),
                            wanted.mutable_cause()}) {
    absl::StripAsciiWhitespace(word);
  }
  const bool has_one = !tenants.AreAll() && tenants.names().size() == 1;
  if (wanted.tenant().empty() && has_one) wanted.set_tenant(tenants.names().front());
  return wanted;
}

}  // namespace

bool Fits(const v1::Silence& silence, const v1::Incident& incident) {
  const v1::Verdict root = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
  return (silence.tenant().empty() || silence.tenant() == incident.tenant()) &&
         FitsPattern(silence.job(), incident.job()) && FitsHost(silence.host(), root) &&
         (silence.cause().empty() || silence.cause() == root.cause());
}

std::string SilenceInWords(const std::string& tenant, const std::string& job,
                           const std::string& host, const std::string& cause,
                           const std::string& length) {
  std::string words;
  const auto add = [&words](const char* name, const std::string& value) {
    if (value.empty()) return;
    absl::StrAppend(&words, words.empty() ? "" : ", ", name, " ", CleanText(value));
  };
  add("tenant", tenant);
  add("job", job);
  add("host", host);
  add("cause", cause);
  add("for", length);
  return words;
}

// Operators of one tenant leave room to those of others.
bool Silences::HasItsShare(const std::string& tenant) const {
  if (tenant.empty()) return false;  // only an operator of all tenants may add it
  const auto own = std::count_if(silences_.begin(), silences_.end(), [&tenant](const auto& one) {
    return one.second.tenant() == tenant;
  });
  return static_cast<size_t>(own) >= kShareOfSilences * (kMostSilences - silences_.size());
}

absl::StatusOr<v1::Silence> Silences::Add(const v1::Silence& given, int64_t seconds,
                                          const std::string& who, const Tenants& tenants,
                                          int64_t now_ns) {
  const v1::Silence wanted = InFull(given, tenants);
  const absl::Status status = Check(wanted, seconds, tenants);
  if (!status.ok()) return status;
  DropEnded(now_ns);
  if (silences_.size() >= kMostSilences) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there are ", kMostSilences, " silences, and there can be no more; end one first"));
  }
  if (HasItsShare(wanted.tenant())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there are ", silences_.size(), " silences, and too many of them are for tenant ",
        CleanText(wanted.tenant()), "; end one of these first"));
  }
  const auto id = [this](int64_t number) {
    return absl::StrCat("silence-", number, daemon_.empty() ? "" : "-", daemon_);
  };
  int64_t number = now_ns / kSecond;
  while (silences_.count(id(number)) != 0) ++number;
  v1::Silence silence;
  silence.set_id(id(number));
  silence.set_tenant(CleanText(wanted.tenant()));
  silence.set_job(CleanText(wanted.job()));
  silence.set_host(CleanText(wanted.host()));
  silence.set_cause(CleanText(wanted.cause()));
  silence.set_comment(DefaultRedactor()->Redact(CleanText(ShownText(wanted.comment()))));
  silence.set_who(CleanText(who));
  *silence.mutable_since() = ToTimestamp(now_ns);
  *silence.mutable_until() = ToTimestamp(now_ns + seconds * kSecond);
  return silences_[silence.id()] = silence;
}

absl::StatusOr<v1::Silence> Silences::End(const std::string& id, const Tenants& tenants,
                                          int64_t now_ns) {
  const auto at = silences_.find(id);
  if (at == silences_.end() || !IsFor(tenants, at->second) || HasEnded(at->second, now_ns)) {
    return absl::NotFoundError(absl::StrCat("no silence \"", CleanText(id),
                                            "\" lasts now; to list them:  rollcall silence"));
  }
  const int64_t would_end_ns = NsOf(at->second.until());
  *at->second.mutable_until() = ToTimestamp(now_ns);
  const v1::Silence ended = at->second;
  silences_.erase(at);
  ended_[id] = {ended, would_end_ns};
  return ended;
}

void Silences::Restore(const std::vector<v1::Silence>& silences) {
  for (const v1::Silence& silence : silences) silences_.emplace(silence.id(), silence);
}

Silences::Merged Silences::Merge(const std::vector<v1::Silence>& stored, int64_t now_ns) {
  Merged merged;
  for (const v1::Silence& theirs : stored) {
    const auto own = silences_.find(theirs.id());
    if (HasEnded(theirs, now_ns)) {
      merged.has_changed = merged.has_changed || own != silences_.end();
      if (own != silences_.end()) silences_.erase(own);
      continue;
    }
    const auto ended = ended_.find(theirs.id());
    if (ended != ended_.end()) {
      merged.lost_ends.push_back(ended->second.silence);
    } else if (own == silences_.end()) {
      silences_.emplace(theirs.id(), theirs);
      merged.begun.push_back(theirs);
      merged.has_changed = true;
    } else if (own->second.incidents() < theirs.incidents()) {
      own->second.set_incidents(theirs.incidents());
      merged.has_changed = true;
    }
  }
  DropEnded(now_ns);
  return merged;
}

std::vector<v1::Silence*> Silences::FindAll(const v1::Incident& incident, int64_t now_ns) {
  std::vector<v1::Silence*> found;
  for (auto& [id, silence] : silences_) {
    if (!HasEnded(silence, now_ns) && Fits(silence, incident)) found.push_back(&silence);
  }
  std::stable_sort(found.begin(), found.end(), [](const v1::Silence* a, const v1::Silence* b) {
    return NsOf(a->until()) < NsOf(b->until());
  });
  return found;
}

v1::Silence* Silences::Find(const v1::Incident& incident, int64_t now_ns) {
  const std::vector<v1::Silence*> all = FindAll(incident, now_ns);
  return all.empty() ? nullptr : all.back();
}

std::vector<v1::Silence> Silences::List(const Tenants& tenants, int64_t now_ns) const {
  std::vector<v1::Silence> list;
  for (const auto& [id, silence] : silences_) {
    const bool is_seen = silence.tenant().empty() || tenants.Has(silence.tenant());
    if (is_seen && !HasEnded(silence, now_ns)) list.push_back(silence);
  }
  std::stable_sort(list.begin(), list.end(), [](const v1::Silence& a, const v1::Silence& b) {
    return NsOf(a.until()) < NsOf(b.until());
  });
  return list;
}

size_t Silences::Count(int64_t now_ns) const {
  return std::count_if(silences_.begin(), silences_.end(),
                       [now_ns](const auto& entry) { return !HasEnded(entry.second, now_ns); });
}

void Silences::DropEnded(int64_t now_ns) {
  for (auto at = silences_.begin(); at != silences_.end();) {
    at = HasEnded(at->second, now_ns) ? silences_.erase(at) : std::next(at);
  }
  for (auto at = ended_.begin(); at != ended_.end();) {
    at = at->second.would_end_ns <= now_ns ? ended_.erase(at) : std::next(at);
  }
}

}  // namespace rollcall
