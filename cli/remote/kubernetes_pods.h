// SPDX-License-Identifier: Apache-2.0
// The pods of a job, as `kubectl get pods` names them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/remote/remote_commands.h"

namespace rollcall {

// "NAMESPACE/SELECTOR": "ml/job-name=train", "ml/app in (a,b)".
struct PodsWanted {
  std::string name_space, selector;
};
absl::StatusOr<PodsWanted> ParsePodsWanted(absl::string_view text);

Command GetPodsCommand(const PodsWanted& wanted);

struct FoundPod {
  PodPlace place;
  std::string node;
  std::string error;  // why it cannot be looked at; empty if it can
};

// The answer of GetPodsCommand(). `container`: "" for the one that holds the job, which is that of
// the annotation kubectl.kubernetes.io/default-container, else the first with a device, else the
// first.
absl::StatusOr<std::vector<FoundPod>> ParsePods(absl::string_view json,
                                                const std::string& container);

}  // namespace rollcall
