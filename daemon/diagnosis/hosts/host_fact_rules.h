// SPDX-License-Identifier: Apache-2.0
// What each kind of fact about a host means: one table. docs/host_facts.md shows it to people.
#pragma once

#include <cstdint>

#include "proto/host_facts.h"

namespace rollcall {

// When a fact is a sign of trouble.
enum class HostSignRule : uint8_t {
  kNever,   // a fact that other facts need, or that people read
  kAlways,  // something broke
  kMore,    // the value is at least `least`, and few others have a tenth of it
  kLess,    // the value is below `least` percent of what most others have
};

// What a sign explains.
enum class HostSignWeight : uint8_t {
  kContext,   // may slow ranks of the host down
  kExplains,  // may hold a rank of the host up
  kStalls,    // may stop a call that all ranks have entered: its ranks are culprits
};

// The hosts with which a fact is compared.
enum class HostPeers : uint8_t {
  kHosts,    // the other hosts
  kGpus,     // all other GPUs
  kSubject,  // the same subject on the other hosts
  kPorts,    // all other ports
};

struct HostFactRule {
  HostFactKind kind;
  HostSignRule rule;
  HostSignWeight weight;
  HostPeers peers;
  int64_t least;
  const char* advice;  // id in HostAdvice(), or empty
};

// Returns the row of the kind. Every kind has one.
const HostFactRule& RuleOf(HostFactKind kind);

// Whether people should see the fact in a report: it is a sign, or would be one beside other hosts.
bool IsWorthALook(HostFactKind kind, int64_t value);

}  // namespace rollcall
