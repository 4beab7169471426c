// SPDX-License-Identifier: Apache-2.0
// Token files: reading them, and adding and removing an entry.
#include "base/names.h"
#include "fuzz_target.h"
#include "security/token_edit.h"
#include "security/token_list.h"

namespace rollcall {
namespace fuzz {
namespace {

TokenEntry NewEntry() {
  TokenEntry entry;
  entry.name = "new-entry";
  entry.role = Role::kAgent;
  entry.tenants = {"default"};
  entry.hosts = {"*.nodes.example"};
  entry.sha256 = std::string(64, '7');
  return entry;
}

void Run(Input input) {
  const std::string text(input.TakeRest());
  const auto entries = ParseTokens(text);
  if (!entries.ok()) {
    Promise(entries.status().message().substr(0, 5) == "line ", "an error names its line");
    return;
  }
  for (const TokenEntry& entry : *entries) {
    Promise(IsPlainName(entry.name), "a token has a plain name");
    Promise(entry.sha256.size() == 64, "a token has a digest");
    Promise((entry.role == Role::kAgent) == !entry.hosts.empty(), "agents only have hosts");
    Promise(TokenIdentity(entry).expires_s == entry.expires_s,
            "an identity expires with its token");
  }
  Promise(FindToken(*entries, text) == nullptr, "a token file holds no token");
  const auto longer = AppendToken(text, NewEntry());
  if (!longer.ok()) return;
  const auto more = ParseTokens(*longer);
  Promise(more.ok() && more->size() == entries->size() + 1, "one entry more");
  const auto shorter = RemoveToken(*longer, "new-entry");
  if (!shorter.ok()) return;
  const auto fewer = ParseTokens(*shorter);
  Promise(fewer.ok() && fewer->size() == entries->size(), "one entry less");
}

const Registered kTarget({"tokens", 2048, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
