// SPDX-License-Identifier: Apache-2.0
// web.yml, and the bcrypt hashes in it.
#include "security/web_config.h"

#include "fuzz_target.h"
#include "security/passwords.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  const auto config = ParseWebConfig(std::string(input.TakeRest()), "/etc/rollcall");
  if (!config.ok()) return;
  Promise(!config->has_tls || !config->cert_file.empty(), "TLS has a certificate");
  Promise(!config->requires_client_certificate || !config->client_ca_file.empty(),
          "whoever requires a certificate can verify it");
  for (const auto& [name, hash] : config->users) {
    Promise(CheckPasswordHash(hash).ok(), "every user has a hash that can be checked");
  }
  for (const auto& [name, value] : config->headers) {
    Promise(value.find_first_of("\r\n") == std::string::npos, "a header is one line");
  }
}

const Registered kTarget({"web_config", 2048, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
