// SPDX-License-Identifier: Apache-2.0
// The flags --redact and --send-arguments of the programs that read processes: rollcall-agent,
// rollcall run, rollcall analyze.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "security/harmless_arguments.h"
#include "security/redact.h"

namespace CLI {
class App;
}

namespace rollcall {

struct RedactFlags {
  std::vector<std::string> patterns;  // each value is a pattern of its own
  std::string arguments = "listed";

  SendArguments send_arguments() const;
};

// `*flags` must outlive the parsing of the flags.
void AddRedactFlags(CLI::App* app, RedactFlags* flags);

// After the flags have been parsed.
absl::StatusOr<std::shared_ptr<const Redactor>> TryMakeRedactor(const RedactFlags& flags);

// Returns the same. nullptr after an error, which this function has printed.
std::shared_ptr<const Redactor> MakeRedactor(const RedactFlags& flags);

}  // namespace rollcall
