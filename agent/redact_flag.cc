// SPDX-License-Identifier: Apache-2.0
#include "agent/redact_flag.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace rollcall {

SendArguments RedactFlags::send_arguments() const {
  return arguments == "all" ? SendArguments::kAll : SendArguments::kListed;
}

void AddRedactFlags(CLI::App* app, RedactFlags* flags) {
  app->add_option("--redact", flags->patterns,
                  "also hide what this expression of RE2 matches in command lines and exceptions; "
                  "none: do not hide what only looks like a secret")
      ->envname("ROLLCALL_REDACT")
      ->expected(1)
      ->take_all()
      ->check(CLI::Validator(CheckRedactPattern, "PATTERN"));
  app->add_option("--send-arguments", flags->arguments,
                  "listed: send known harmless arguments, and only the length of others; all: send "
                  "all, secrets hidden")
      ->envname("ROLLCALL_SEND_ARGUMENTS")
      ->capture_default_str()
      ->check(CLI::IsMember({"listed", "all"}));
}

absl::StatusOr<std::shared_ptr<const Redactor>> TryMakeRedactor(const RedactFlags& flags) {
  if (flags.patterns.empty()) return DefaultRedactor();  // it exists already
  return Redactor::Create(flags.patterns);
}

std::shared_ptr<const Redactor> MakeRedactor(const RedactFlags& flags) {
  auto redactor = TryMakeRedactor(flags);
  if (redactor.ok()) return *std::move(redactor);
  std::cerr << "rollcall: " << redactor.status().message() << "\n";
  return nullptr;
}

}  // namespace rollcall
