// SPDX-License-Identifier: Apache-2.0
#include "security/token_list.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/digest/digest.h"
#include "base/names.h"
#include "base/yaml/yaml.h"

namespace rollcall {
namespace {

constexpr char kPrefix[] = "rollcall_";
constexpr size_t kSecretBytes = 32;
constexpr size_t kMostEntries = 10'000;
constexpr size_t kMostValues = 100'000;  // tenants and hosts of all entries
constexpr size_t kDeepest = 4;           // tokens, entry, list, value

// Refuses what a token file never needs, before a tree is built of it: aliases, which let a short
// text become a huge tree, depth, and several documents.
class ShapeCheck : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Refuse(mark, "a second document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Check(mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Refuse(mark, "an alias"); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string&) override {
    Check(mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Enter(mark, anchor);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Enter(mark, anchor);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Refuse(const YAML::Mark& mark, absl::string_view what) {
    FailAt(mark, absl::StrCat(what, " has no place in a token file"));
  }
  void Check(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) Refuse(mark, "an anchor");
  }
  void Enter(const YAML::Mark& mark, YAML::anchor_t anchor) {
    Check(mark, anchor);
    if (++depth_ > kDeepest) Refuse(mark, "a list this deep");
  }

  size_t depth_ = 0;
  int documents_ = 0;
};

void CheckShape(const std::string& text) {
  ShapeCheck check;
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(check)) {
  }
}

class EntryReader {
 public:
  // `values` counts the tenants and hosts of the whole file.
  explicit EntryReader(size_t* values) : values_(values) {}

  TokenEntry Read(const YAML::Node& node) {
    if (!node.IsMap()) FailAt(node.Mark(), "an entry has the keys name, role, expires, sha256");
    entry_.line = static_cast<size_t>(std::max(node.Mark().line, 0));
    for (const auto& pair : node) ReadKey(pair.first, pair.second);
    for (const char* required : {"name", "role", "expires", "sha256"}) {
      if (seen_.count(required) == 0) {
        FailAt(node.Mark(), absl::StrCat("the entry has no key ", required));
      }
    }
    CheckWhole(node);
    return entry_;
  }

 private:
  void ReadKey(const YAML::Node& key, const YAML::Node& value) {
    const std::string name = key.IsScalar() ? key.Scalar() : "";
    if (!seen_.insert(name).second) FailAt(key.Mark(), absl::StrCat("a second ", name));
    if (name == "tenants") return ReadList(value, /*of_hosts=*/false, &entry_.tenants);
    if (name == "hosts") return ReadList(value, /*of_hosts=*/true, &entry_.hosts);
    const bool known = name == "name" || name == "role" || name == "expires" || name == "sha256";
    if (!known)
      FailAt(key.Mark(), "a key is not one of name, role, tenants, hosts, expires, sha256");
    if (!value.IsScalar()) FailAt(key.Mark(), absl::StrCat(name, " is not text"));
    const std::string problem = ReadScalar(name, value.Scalar());
    if (!problem.empty()) FailAt(value.Mark(), problem);
  }

  // Returns what is wrong.
  std::string ReadScalar(const std::string& key, const std::string& text) {
    if (key == "name") {
      entry_.name = text;
      return IsPlainName(text) ? "" : "a name has letters, digits, '.', '_' and '-' only";
    }
    if (key == "role") {
      const std::optional<Role> role = ParseRole(text);
      if (role.has_value()) entry_.role = *role;
      return role.has_value() ? "" : "the role is not agent, viewer or operator";
    }
    if (key == "expires") return ReadExpiry(text);
    entry_.sha256 = absl::AsciiStrToLower(text);
    const bool hex = text.size() == 64 && std::all_of(text.begin(), text.end(), [](char byte) {
                       return absl::ascii_isxdigit(static_cast<unsigned char>(byte));
                     });
    return hex ? "" : "sha256 has 64 hex digits: the SHA-256 of the token, never the token itself";
  }

  std::string ReadExpiry(const std::string& text) {
    if (text == "never") return "";
    absl::Time time;
    std::string ignored;
    if (!absl::ParseTime("%Y-%m-%dT%H:%M:%SZ", text, absl::UTCTimeZone(), &time, &ignored) ||
        absl::ToUnixSeconds(time) <= 0) {
      return "expires is neither 'never' nor a time like 2027-11-23T00:00:00Z";
    }
    entry_.expires_s = absl::ToUnixSeconds(time);
    return "";
  }

  void ReadList(const YAML::Node& list, bool of_hosts, std::vector<std::string>* values) {
    if (!list.IsSequence()) FailAt(list.Mark(), "tenants and hosts are lists: [a, b]");
    for (const YAML::Node& value : list) {
      const std::string text = value.IsScalar() ? value.Scalar() : "";
      if (text != kAll && !(of_hosts ? IsHostPattern(text) : IsTenantName(text))) {
        FailAt(value.Mark(), of_hosts ? "that is not a host" : "that is not a tenant");
      }
      if (++*values_ > kMostValues) FailAt(value.Mark(), "the file has too many values");
      values->push_back(text);
    }
  }

  void CheckWhole(const YAML::Node& node) {
    if (seen_.count("tenants") == 0) entry_.tenants = {kTenantIfUnnamed};
    if (entry_.role == Role::kAgent && entry_.hosts.empty()) {
      FailAt(node.Mark(), "an agent needs hosts: [NAME], or [\"*\"] for all");
    }
    if (entry_.role != Role::kAgent && !entry_.hosts.empty()) {
      FailAt(node.Mark(), "only an agent has hosts");
    }
  }

  size_t* values_;
  TokenEntry entry_;
  std::set<std::string> seen_;
};

std::vector<TokenEntry> ReadEntries(const YAML::Node& list) {
  std::vector<TokenEntry> entries;
  if (list.IsNull()) return entries;
  if (!list.IsSequence()) FailAt(list.Mark(), "tokens is a list of entries");
  if (list.size() > kMostEntries) {
    FailAt(list.Mark(), absl::StrCat("the list has more than ", kMostEntries, " tokens"));
  }
  std::set<std::string> names, digests;
  size_t values = 0;
  for (const YAML::Node& node : list) {
    TokenEntry entry = EntryReader(&values).Read(node);
    if (!names.insert(entry.name).second) {
      FailAt(node.Mark(), absl::StrCat("a second token of the name ", entry.name));
    }
    if (!digests.insert(entry.sha256).second) {
      FailAt(node.Mark(), absl::StrCat("the sha256 of ", entry.name, " stands there twice"));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<TokenEntry> ReadFile(const YAML::Node& root) {
  std::vector<TokenEntry> entries;
  if (!root.IsDefined() || root.IsNull()) return entries;
  if (!root.IsMap()) FailAt(root.Mark(), "a token file begins with 'tokens:'");
  bool seen = false;
  for (const auto& pair : root) {
    if (!pair.first.IsScalar() || pair.first.Scalar() != "tokens" || seen) {
      FailAt(pair.first.Mark(), "a token file has the key 'tokens', once, and no other");
    }
    seen = true;
    entries = ReadEntries(pair.second);
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<TokenEntry>> ParseTokens(absl::string_view text) {
  const size_t nul = text.find('\0');
  if (nul != absl::string_view::npos) {
    const auto lines = std::count(text.begin(), text.begin() + nul, '\n');
    return YamlError(static_cast<int>(lines + 1), "a NUL byte");
  }
  return ReadYaml([copy = std::string(text)] {
    CheckShape(copy);
    return ReadFile(YAML::Load(copy));
  });
}

absl::StatusOr<std::string> NewToken() {
  const std::optional<std::string> secret = RandomBytes(kSecretBytes);
  if (!secret.has_value()) return absl::UnavailableError("the system gives no random bytes");
  return absl::StrCat(kPrefix, ToBase64Url(*secret));
}

bool IsTokenForm(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kPrefix)) return false;
  if (text.size() != (kSecretBytes * 8 + 5) / 6) return false;
  const std::optional<std::string> bytes = FromBase64Url(text);
  return bytes.has_value() && bytes->size() == kSecretBytes;
}

const TokenEntry* FindToken(const std::vector<TokenEntry>& entries, absl::string_view token) {
  if (!IsTokenForm(token)) return nullptr;
  const std::string digest = Sha256Hex(token);
  const TokenEntry* found = nullptr;
  for (const TokenEntry& entry : entries) {
    if (EqualInConstantTime(entry.sha256, digest)) found = &entry;
  }
  return found;
}

bool HasExpired(const TokenEntry& entry, int64_t now_s) {
  return entry.expires_s != 0 && now_s >= entry.expires_s;
}

Identity TokenIdentity(const TokenEntry& entry) {
  return {absl::StrCat("token ", entry.name),
          {entry.role},
          entry.hosts,
          entry.tenants,
          entry.expires_s,
          absl::StrCat("token ", entry.sha256)};
}

std::string ExpiryText(int64_t expires_s) {
  if (expires_s == 0) return "never";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(expires_s),
                          absl::UTCTimeZone());
}

}  // namespace rollcall
