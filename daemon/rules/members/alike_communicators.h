// SPDX-License-Identifier: Apache-2.0
// The communicators of a job by name and size. A job may have 100,000 of them, and thousands may
// lack a rank: a search of all of them for each takes minutes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/model/job_state.h"

namespace rollcall {

// The communicators of one name and size, in order of their ids.
struct AlikeCommunicators {
  std::vector<const Communicator*> all;
  std::vector<const Communicator*> complete;  // every rank has joined; only the first ones
};

// `job` must not change.
class CommunicatorsByName {
 public:
  explicit CommunicatorsByName(const JobState& job);

  static constexpr size_t kMostComplete = 65;

  // `comm`: of the job.
  const AlikeCommunicators& Alike(const Communicator& comm) const;

  // The process with rank `other` in the first communicator of this name in which `process` has
  // rank `mine`.
  std::optional<int32_t> FindPeer(absl::string_view name, int32_t process, int32_t mine,
                                  int32_t other);

 private:
  using Places = std::unordered_map<int32_t, std::vector<const Communicator*>>;  // by process

  const Places& PlacesIn(absl::string_view name);

  std::map<std::pair<absl::string_view, int32_t>, AlikeCommunicators> kinds_;
  std::map<std::string, Places, std::less<>> places_;  // of the names that were asked for
};

}  // namespace rollcall
