// SPDX-License-Identifier: Apache-2.0
// JSON Web Key Sets.
#include "fuzz_target.h"
#include "security/jwt/key_set.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  const auto keys = KeySet::Parse(std::string(input.TakeRest()));
  if (!keys.ok()) return;
  Promise(keys->size() != 0, "a set has keys");
  Promise(keys->Find("") == nullptr, "no key is without an id");
  Promise(!keys->Verifies("key-1", "message", std::string(64, '\0')), "nobody signs with zeros");
}

const Registered kTarget({"jwks", 4096, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
