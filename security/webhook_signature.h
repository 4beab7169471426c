// SPDX-License-Identifier: Apache-2.0
// The signature of a webhook, which proves to its receiver that the daemon sent it, and when.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// "v1,<base64 of HMAC-SHA256 of "ID.TIME.BODY">". `key`: "whsec_" and the key in base64, as the
// libraries of the specification write it, or the key itself. Pure.
std::string WebhookSignature(const std::string& key, const std::string& id, int64_t time_s,
                             const std::string& body);

}  // namespace rollcall
