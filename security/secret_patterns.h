// SPDX-License-Identifier: Apache-2.0
// What secrets look like in command lines and error messages: one table.
#pragma once

namespace rollcall {

// An expression of RE2. Its first group is the secret; without a group, the whole match.
struct SecretPattern {
  const char* name;
  const char* expression;
};

// A value, quoted or not. A closing quote may be missing, because texts are cut.
#define ROLLCALL_QUOTED R"("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)"

inline constexpr SecretPattern kSecretPatterns[] = {
    // https://user:PASSWORD@host, https://TOKEN@host
    {"password in a URL", R"(://[^\s/:@?#]*:([^\s/?#]+)@)"},
    {"token in a URL", R"(://([^\s/:@?#]{16,})@)"},
    {"signature in a URL",
     R"((?i)[?&](?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token)"
     R"(|x-goog-signature|x-goog-credential|token|access_token|api_key|key|password)=([^&\s"']+))"},
    // --password=SECRET, --db-password SECRET, "api_key": "SECRET", password = SECRET
    {"password, assigned",
     R"((?i)(?:^|[^a-z0-9])(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key)"
     R"(|secret[_-]?key|secret[_-]?access[_-]?key|private[_-]?key|signing[_-]?key|client[_-]?secret)"
     R"(|auth[_-]?key|account[_-]?key|shared[_-]?access[_-]?key)["']?\s*[=:]\s*)"
     "(" ROLLCALL_QUOTED R"(|[^\s"';]+))"},
    {"password, as a flag",
     R"((?i)--?(?:[a-z0-9]+[_-])*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key)"
     R"(|secret[_-]?key|private[_-]?key|signing[_-]?key|auth[_-]?key)\s+)"
     "(" ROLLCALL_QUOTED R"(|[^\s"'-][^\s"']*))"},
    // A "token" alone is also a word of language models: pad_token, --max-tokens, tokens=512.
    {"token, as a flag",
     R"((?i)--?(?:(?:[a-z0-9]+[_-])*(?:auth|access|api|hf|hub|huggingface|github|gh|gitlab|wandb)"
     R"(|refresh|session|security|oauth|bearer|slack|bot|service|personal|login|registry|user)[_-])?)"
     R"(token(?:=|\s+)()" ROLLCALL_QUOTED R"(|[^\s"'-][^\s"']{5,}))"},
    {"token, assigned",
     R"((?i)(?:^|[^a-z0-9])(?:auth|access|api|hf|hub|huggingface|github|gh|gitlab|wandb|refresh)"
     R"(|session|security|oauth|bearer|slack|bot|service|personal|login|registry|user)[_-]?)"
     R"(token["']?\s*[=:]\s*()" ROLLCALL_QUOTED R"(|[^\s"';]{6,}))"},
    {"token, alone", R"((?i)(?:^|[\s"'{,;(])token["']?[=:]\s?["']?([^\s"',;&}\])]{12,}))"},
    // MY_TOKEN=SECRET, DB_PWD=SECRET; PWD alone is a folder.
    {"environment",
     R"((?:^|[^A-Za-z0-9_])[A-Z0-9_]*(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|API_?KEY)"
     R"(|ACCESS_KEY(?:_ID)?|SECRET_KEY|PRIVATE_KEY|_PWD|_PASS)["']?(?:=|: ?))"
     "(" ROLLCALL_QUOTED R"(|[^\s"';]+))"},
    {"connection string", R"((?i);\s*(?:pwd|password)=([^;\s"']+))"},
    // Keys that their shape shows.
    {"AWS", R"(\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})\b)"},
    {"GitHub", R"(\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}))"},
    {"GitLab", R"(\bglpat-[A-Za-z0-9_-]{20,})"},
    {"Hugging Face", R"(\b(?:hf|api_org)_[A-Za-z0-9]{30,})"},
    {"OpenAI, Anthropic",
     R"(\bsk-(?:[A-Za-z0-9]{20,}|(?:proj|ant|svcacct|admin)-[A-Za-z0-9_-]{20,}))"},
    {"Slack", R"(\bxox[abeoprs]-[A-Za-z0-9-]{10,})"},
    {"Slack web hook", R"(hooks\.slack\.com/services/([A-Za-z0-9/]+))"},
    {"Google", R"(\bAIza[A-Za-z0-9_-]{35})"},
    {"NVIDIA", R"(\bnvapi-[A-Za-z0-9_-]{20,})"},
    {"Rollcall", R"(\brollcall_[A-Za-z0-9_-]{43})"},
    {"JSON web token", R"(\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"},
    {"bearer", R"((?i)\bbearer\s+([a-z0-9._~+/=-]{16,}))"},
    {"authorization",
     R"((?i)authorization["']?\s*[:=]\s*["']?(?:basic|token|digest|negotiate)\s+([^\s"',]+))"},
    // Without its end too: texts are cut. Line breaks are blanks or "?" by then.
    {"private key",
     R"(-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=?\s\\]*(?:-----END [A-Z ]*PRIVATE KEY-----)?)"},
};

#undef ROLLCALL_QUOTED

}  // namespace rollcall
