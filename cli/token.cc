// SPDX-License-Identifier: Apache-2.0
// rollcall token: makes, lists and revokes the tokens of a token file. Asks no daemon: a running
// rollcalld reads the file again when it changes.
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/digest/digest.h"
#include "base/edit_file.h"
#include "base/names.h"
#include "base/watched_file.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "security/token_edit.h"
#include "security/token_list.h"

namespace rollcall {
namespace {

constexpr int kLongestDays = 36'500;

struct TokenFlags {
  std::string action;
  std::string file;
  std::string name;
  std::string role;
  std::vector<std::string> tenants;
  std::vector<std::string> hosts;
  std::string expires = "365d";
};

// Returns the days of "365d"; 0 for "never".
std::optional<int> ParseDays(absl::string_view text) {
  if (text == "never") return 0;
  int days = 0;
  const bool has_unit = !text.empty() && text.back() == 'd';
  if (!has_unit || !absl::SimpleAtoi(text.substr(0, text.size() - 1), &days)) return std::nullopt;
  return days >= 1 && days <= kLongestDays ? std::optional<int>(days) : std::nullopt;
}

std::string CheckExpires(const std::string& text) {
  return ParseDays(text).has_value()
             ? ""
             : absl::StrCat(text, " is neither never nor a number of days like 365d");
}

int64_t NowS() { return absl::ToUnixSeconds(absl::Now()); }

int Fail(absl::string_view why, int exit_code) {
  std::cerr << "rollcall token: " << why << "\n";
  return exit_code;
}

int Fail(const absl::Status& status, const std::string& file) {
  return Fail(absl::StrCat(file, ": ", status.message()), 1);
}

// What is wrong with the flags of `token new`.
std::string CheckNew(const TokenFlags& flags) {
  if (!IsPlainName(flags.name)) return "give the holder's name: --name=NAME";
  if (!ParseRole(flags.role).has_value()) return "give a role: --role=agent|viewer|operator";
  for (const std::string& tenant : flags.tenants) {
    if (tenant != kAll && !IsTenantName(tenant)) return absl::StrCat(tenant, " is not a tenant");
  }
  for (const std::string& host : flags.hosts) {
    if (host != kAll && !IsHostPattern(host)) return absl::StrCat(host, " is not a host");
  }
  const bool is_agent = flags.role == RoleName(Role::kAgent);
  if (is_agent && flags.hosts.empty()) {
    return "give the hosts of the agent: --host=NAME, or --host='*' for all";
  }
  if (!is_agent && !flags.hosts.empty()) return "only an agent has hosts: leave out --host";
  return "";
}

TokenEntry MakeEntry(const TokenFlags& flags, const std::string& token) {
  TokenEntry entry;
  entry.name = flags.name;
  entry.role = *ParseRole(flags.role);
  entry.tenants = flags.tenants;
  if (entry.tenants.empty()) entry.tenants = {kTenantIfUnnamed};
  entry.hosts = flags.hosts;
  const int days = *ParseDays(flags.expires);
  if (days > 0) entry.expires_s = NowS() + int64_t{days} * 86'400;
  entry.sha256 = Sha256Hex(token);
  return entry;
}

int MakeNew(const TokenFlags& flags) {
  const std::string problem = CheckNew(flags);
  if (!problem.empty()) return Fail(problem, kExitBadUsage);
  const absl::StatusOr<std::string> token = NewToken();
  if (!token.ok()) return Fail(token.status().message(), 1);
  const TokenEntry entry = MakeEntry(flags, *token);
  const absl::Status status =
      EditFile(flags.file, /*create=*/true,
               [&entry](const std::string& text) { return AppendToken(text, entry); });
  if (!status.ok()) return Fail(status, flags.file);
  std::cout << *token << std::endl;
  if (!std::cout) {
    return Fail(
        absl::StrCat("cannot write the token to stdout. Revoke it:  rollcall token revoke --name=",
                     flags.name, " --file=", flags.file),
        1);
  }
  std::cerr << "rollcall: the token of " << flags.name << " (" << flags.role << ", expires "
            << ExpiryText(entry.expires_s) << ") is shown this one time\n"
            << "rollcall: for the daemon:  rollcalld --token-file=" << flags.file
            << "   (a running one reads it within seconds)\n"
            << "rollcall: for " << flags.name
            << ":  write the token into a file of mode 0600, and use --token-file=THAT_FILE\n";
  return 0;
}

int Revoke(const TokenFlags& flags) {
  if (flags.name.empty()) return Fail("give the holder of the token: --name=NAME", kExitBadUsage);
  const absl::Status status =
      EditFile(flags.file, /*create=*/false,
               [&flags](const std::string& text) { return RemoveToken(text, flags.name); });
  if (!status.ok()) return Fail(status, flags.file);
  std::cerr << "rollcall: the token of " << flags.name
            << " is revoked; a running rollcalld follows within seconds\n";
  return 0;
}

int List(const TokenFlags& flags) {
  const absl::StatusOr<std::string> text = ReadWatchedFile(flags.file);
  if (!text.ok()) return Fail(text.status().message(), 1);
  const absl::StatusOr<std::vector<TokenEntry>> entries = ParseTokens(*text);
  if (!entries.ok()) return Fail(entries.status(), flags.file);
  const int64_t now_s = NowS();
  for (const TokenEntry& entry : *entries) {
    std::cout << absl::StrFormat(
        "%-20s %-8s tenants %s%s, %s %s\n", entry.name, std::string(RoleName(entry.role)),
        absl::StrJoin(entry.tenants, " "),
        entry.hosts.empty() ? "" : absl::StrCat(", hosts ", absl::StrJoin(entry.hosts, " ")),
        HasExpired(entry, now_s) ? "expired" : "expires", ExpiryText(entry.expires_s));
  }
  if (entries->empty()) std::cout << "no tokens\n";
  return 0;
}

}  // namespace

int TokenCommand(const std::vector<std::string>& arguments) {
  TokenFlags flags;
  CLI::App app("Makes a token and prints it; lists tokens; revokes one.", "rollcall token");
  app.add_option("ACTION", flags.action, "new, list or revoke")
      ->required()
      ->check(CLI::IsMember({"new", "list", "revoke"}));
  app.add_option("--file", flags.file, "rollcalld's token file; new makes it, with mode 0600")
      ->required();
  app.add_option("--name", flags.name, "who holds the token: a person, a robot, a cluster");
  app.add_option("--role", flags.role, "what the token is for (new)")
      ->check(CLI::IsMember({"agent", "viewer", "operator"}));
  app.add_option("--tenant", flags.tenants,
                 "a tenant whose jobs the token is for, or * for all; repeatable; without it, "
                 "the tenant is default (new)")
      ->take_all();
  app.add_option("--host", flags.hosts,
                 "a host for which an agent speaks, *.DOMAIN or * for all; repeatable (new)")
      ->take_all();
  app.add_option("--expires", flags.expires, "lifetime of the token: 90d, or never (new)")
      ->capture_default_str()
      ->check(CLI::Validator(CheckExpires, "365d|never"));
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  if (flags.action == "new") return MakeNew(flags);
  std::string of_new = FirstTyped(arguments, {"--role", "--tenant", "--host", "--expires"});
  if (flags.action == "list" && of_new.empty()) of_new = FirstTyped(arguments, {"--name"});
  if (!of_new.empty()) {
    return RefuseUsage(app, absl::StrCat(flags.action, " takes no ", of_new, ": leave it out"));
  }
  return flags.action == "list" ? List(flags) : Revoke(flags);
}

}  // namespace rollcall
