// SPDX-License-Identifier: Apache-2.0
// Which alerts people do not want for a time. Pure: the caller passes the wall clock. One owner, no
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/model/tenants.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr size_t kMostSilences = 500;  // that have not ended
inline constexpr int64_t kShortestSilenceSeconds = 60;
inline constexpr int64_t kLongestSilenceSeconds = 30 * 86'400;
inline constexpr size_t kMostCommentBytes = 500;
inline constexpr size_t kMostWordBytes = 255;  // of a tenant, job, host or cause

// Whether the silence holds back the alerts of the incident, as long as it lasts.
bool Fits(const v1::Silence& silence, const v1::Incident& incident);

// "job llm-*, host node-17, for 2h": for the audit.
std::string SilenceInWords(const std::string& tenant, const std::string& job,
                           const std::string& host, const std::string& cause,
                           const std::string& length);

class Silences {
 public:
  // `daemon`: part of the ids, where several daemons share the store; empty if there is one.
  explicit Silences(std::string daemon = "") : daemon_(std::move(daemon)) {}

  // Begins a silence of `seconds` for the tenant, job, host and cause of `wanted`, with its
  // comment. `tenants`: for which `who` may act. Returns it with its id and times.
  // kInvalidArgument, kOutOfRange, kPermissionDenied, kFailedPrecondition (there are
  // kMostSilences): the message names what to do.
  absl::StatusOr<v1::Silence> Add(const v1::Silence& wanted, int64_t seconds,
                                  const std::string& who, const Tenants& tenants, int64_t now_ns);
  // Ends it now. Returns its last state. kNotFound: there is none that `tenants` may act on, or it
  // has ended.
  absl::StatusOr<v1::Silence> End(const std::string& id, const Tenants& tenants, int64_t now_ns);

  // Takes over the silences of an earlier daemon.
  void Restore(const std::vector<v1::Silence>& silences);

  struct Merged {
    std::vector<v1::Silence> begun;  // that were not known here
    bool has_changed = false;
    // Another daemon has written these as if they lasted, and they have ended here: to be stored
    // again.
    std::vector<v1::Silence> lost_ends;
  };
  // Takes what other daemons have stored: silences that have begun, or that were ended.
  Merged Merge(const std::vector<v1::Silence>& stored, int64_t now_ns);

  // Returns the silences that fit the incident; the one that ends last comes last. The next call
  // that changes something invalidates them.
  std::vector<v1::Silence*> FindAll(const v1::Incident& incident, int64_t now_ns);
  // Returns the last of them, or nullptr.
  v1::Silence* Find(const v1::Incident& incident, int64_t now_ns);

  // Returns the silences that have not ended and that `tenants` may see; the one that ends next
  // first.
  std::vector<v1::Silence> List(const Tenants& tenants, int64_t now_ns) const;
  size_t Count(int64_t now_ns) const;

 private:
  bool HasItsShare(const std::string& tenant) const;
  void DropEnded(int64_t now_ns);

  const std::string daemon_;
  std::map<std::string, v1::Silence> silences_;  // by id
  // The silences that were ended here, by id, until they would have ended by themselves.
  struct EndedEarly {
    v1::Silence silence;
    int64_t would_end_ns = 0;
  };
  std::map<std::string, EndedEarly> ended_;
};

}  // namespace rollcall
