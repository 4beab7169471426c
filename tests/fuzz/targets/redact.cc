// SPDX-License-Identifier: Apache-2.0
// The search for secrets in error messages of jobs, and what is sent of their command lines.
#include "security/redact.h"

#include "fuzz_target.h"
#include "security/harmless_arguments.h"
#include "security/shown_text.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  static const auto& redactor = *new std::shared_ptr<const Redactor>(DefaultRedactor());
  const std::string text(input.TakeRest());
  const std::string hidden = redactor->Redact(text);
  // The shortest secret has one byte.
  Promise(hidden.size() <= text.size() * sizeof(kRedacted), "a text grows by its secrets only");
  const std::string secret = "AKIAIOSFODNN7EXAMPLE";
  // Within a longer word it does not count.
  if (ShownText(text).find(secret) != std::string::npos) return;
  const std::string with = redactor->Redact(text + " " + secret + " ");
  Promise(with.find(secret) == std::string::npos, "no text protects a secret");
  const std::string value = "hunter2-of-nobody";
  const std::string command = "./train\n" + text + "\n--unknown-flag\n" + value;
  Promise(
      CommandToSend(command, SendArguments::kListed, *redactor).find(value) == std::string::npos,
      "no argument has another one sent");
}

const Registered kTarget({"redact", 2048, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
