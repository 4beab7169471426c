// SPDX-License-Identifier: Apache-2.0
// Names the hosts of which there is no look, or no whole one, and why. Pure.
#pragma once

#include <string>
#include <vector>

#include "rollcall/v1/look.pb.h"

namespace rollcall {

// A line for each reason, of most hosts first: "host gone: no route to host", "hosts a, b and 5
// more: ...". At most kMostUnansweredLines, of which the last one may count the rest.
inline constexpr size_t kMostUnansweredLines = 16;
std::vector<std::string> UnansweredHosts(const std::vector<v1::HostLook>& looks);

// Returns ProcessLook::unseen of a process. `has_answered`: when its state was read in /proc.
std::string WhyUnseen(const v1::ProcessLook& process, bool has_answered);

// What looks could not see, which is of no one job; with the host, where there are several.
std::vector<std::string> UnseenOnHosts(const std::vector<v1::HostLook>& looks);

}  // namespace rollcall
