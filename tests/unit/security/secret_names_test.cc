// SPDX-License-Identifier: Apache-2.0
#include "security/secret_names.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(SecretNamesTest, NamesOfSecretsSuggestOne) {
  for (const char* name :
       {"password",         "db-password", "DB_PASSWORD", "dbPassword",   "pass",    "pw",
        "passphrase",       "token",       "HF_TOKEN",    "accessToken",  "api-key", "API_KEY",
        "apiKey",           "apikey",      "wandb-key",   "clientSecret", "secret",  "credential",
        "NCCL_PLUGIN_AUTH", "cookie",      "token2",      "user.pwd"}) {
    EXPECT_TRUE(SuggestsSecret(name)) << name;
  }
}

TEST(SecretNamesTest, OtherNamesSuggestNone) {
  for (const char* name :
       {"", "max-tokens", "tokenizer", "token_embedding", "pad_token", "eos-token-id", "passed",
        "monkey", "secretary-name", "tls-key-file", "key_padding_mask", "NCCL_DEBUG", "author",
        "compass", "num-keypoints", "keyboard", "pine", "spin", "signal"}) {
    EXPECT_FALSE(SuggestsSecret(name)) << name;
  }
}

}  // namespace
}  // namespace rollcall
