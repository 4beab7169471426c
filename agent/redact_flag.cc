// SPDX-License-Identifier: Apache-2.0
#include "agent/redact_flag.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace rollcall {

void AddRedactFlag(CLI::App* app, std::vector<std::string>* patterns) {
  app->add_option("--redact", *patterns,
                  "also hide what this expression of RE2 matches in command lines and exceptions; "
                  "none: do not hide what only looks like a secret")
      ->envname("ROLLCALL_REDACT")
      ->expected(1)
      ->take_all()
      ->check(CLI::Validator(CheckRedactPattern, "PATTERN"));
}

std::shared_ptr<const Redactor> MakeRedactor(const std::vector<std::string>& patterns) {
  auto redactor = Redactor::Create(patterns);
  if (redactor.ok()) return *std::move(redactor);
  std::cerr << "rollcall: " << redactor.status().message() << "\n";
  return nullptr;
}

}  // namespace rollcall
