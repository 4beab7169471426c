// SPDX-License-Identifier: Apache-2.0
// Facts about hosts in words.
#pragma once

#include <string>

#include "daemon/model/host_facts.h"

namespace rollcall {

// The beginning of a long text, as HostFactInWords() uses it.
std::string Shortened(const std::string& text);

// "mlx5_2 port 1 went DOWN".
std::string HostFactInWords(const HostFact& fact);

// "3 s before the wait began", "12 s after the wait began"; "" for what held when the agent looked.
std::string WhenInWords(const HostFact& fact, int64_t since_ns);

}  // namespace rollcall
