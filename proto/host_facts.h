// SPDX-License-Identifier: Apache-2.0
// The kinds of facts about a host, which agent and daemon share. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rollcall {

enum class HostFactKind : uint8_t {
#define HOST_FACT(name, text, probe, phrase) name,
#include "proto/host_facts.def"
  kUnknown,  // of an agent that is newer than this program
};

inline constexpr size_t kHostFactKinds = static_cast<size_t>(HostFactKind::kUnknown);

struct HostFactInfo {
  HostFactKind kind;
  const char* text;
  const char* probe;
  const char* phrase;
};

inline constexpr HostFactInfo kHostFactTable[] = {
#define HOST_FACT(name, text, probe, phrase) {HostFactKind::name, text, probe, phrase},
#include "proto/host_facts.def"
    {HostFactKind::kUnknown, "", "", "$s: $t"},
};

constexpr const HostFactInfo& InfoOf(HostFactKind kind) {
  return kHostFactTable[static_cast<size_t>(kind)];
}

// kUnknown: the kind is unknown to this program.
constexpr HostFactKind FindHostFactKind(std::string_view text) {
  for (const HostFactInfo& info : kHostFactTable) {
    if (text == info.text) return info.kind;
  }
  return HostFactKind::kUnknown;
}

// Limits of what one host may report: an agent gathers no more, and a daemon drops what exceeds
// them.
inline constexpr size_t kMostHostFacts = 512;
inline constexpr size_t kMostHostProbes = 64;
inline constexpr size_t kMostFactText = 240;      // bytes, of a subject or text
inline constexpr size_t kMostFactProcesses = 64;  // of one request

}  // namespace rollcall
