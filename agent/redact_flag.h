// SPDX-License-Identifier: Apache-2.0
// The flag --redact of the programs that read processes: rollcall-agent, rollcall run, rollcall
// analyze.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "security/redact.h"

namespace CLI {
class App;
}

namespace rollcall {

// `*patterns` must outlive the parsing of the flags. Each value is a pattern of its own.
void AddRedactFlag(CLI::App* app, std::vector<std::string>* patterns);

// After the flags have been parsed. nullptr: this function has printed the error.
std::shared_ptr<const Redactor> MakeRedactor(const std::vector<std::string>& patterns);

}  // namespace rollcall
