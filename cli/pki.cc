// SPDX-License-Identifier: Apache-2.0
// rollcall pki: an authority of one's own, and certificates for daemons, agents and people.
#include "security/pki/pki.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <iostream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "security/certificates/certificate.h"

namespace rollcall {
namespace {

constexpr int64_t kDayS = 86'400;

struct PkiFlags {
  std::string action;
  std::string folder;
  std::string name;  // the positional argument
  PkiRequest request;
  std::string domain = "rollcall";
  std::optional<int> days;
  int within_days = 30;
  bool all = false;
};

int FailPki(const absl::Status& status) {
  std::cerr << "rollcall: " << status.message() << "\n";
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitBadUsage : 1;
}

std::string FilesOf(const std::string& folder, const std::string& name) {
  return absl::StrCat("--tls-cert=", folder, "/", name, ".crt --tls-key=", folder, "/", name,
                      ".key");
}

// How to start the program that the certificate is for.
std::string CommandFor(const std::string& folder, const PkiEntry& entry) {
  const std::string files = FilesOf(folder, entry.name);
  if (entry.role == "daemon") {
    return absl::StrCat("rollcalld ", files, " --tls-client-ca=", folder,
                        "/ca.crt --tls-crl=", folder, "/ca.crl");
  }
  return absl::StrCat(entry.role == "agent" ? "rollcall-agent" : "rollcall status",
                      " --tls-ca=", folder, "/ca.crt ", files);
}

void PrintIssued(const std::string& folder, const PkiEntry& entry, const char* verb) {
  std::cout << verb << " " << folder << "/" << entry.name << ".crt and .key: " << entry.role
            << (entry.hosts.empty() ? "" : " on " + absl::StrJoin(entry.hosts, ", "))
            << ", valid until " << DateOf(entry.expires_s)
            << "\nuse them:  " << CommandFor(folder, entry) << "\n";
}

int Init(const PkiFlags& flags, int64_t now_s) {
  constexpr int kUsualDays = 3650;
  const absl::StatusOr<int64_t> until_s =
      InitPki(flags.folder, flags.domain, flags.days.value_or(kUsualDays), now_s);
  if (!until_s.ok()) return FailPki(until_s.status());
  std::cout << "made the authority " << flags.folder << "/ca.crt, valid until " << DateOf(*until_s)
            << ". Keep " << flags.folder << "/ca.key secret: it signs certificates for any name.\n"
            << "next:  rollcall pki issue " << flags.folder << " --role=daemon --host=NAME\n"
            << "       rollcall pki issue " << flags.folder
            << " --role=agent --host=NAME      (for each host)\n";
  return 0;
}

int Issue(const PkiFlags& flags, int64_t now_s) {
  PkiRequest request = flags.request;
  if (request.role.empty()) {
    return FailPki(absl::InvalidArgumentError(
        "pki issue needs --role=agent, --role=daemon, --role=operator or --role=viewer"));
  }
  request.days = flags.days.value_or(request.days);
  const absl::StatusOr<PkiEntry> entry = IssueInPki(flags.folder, request, now_s);
  if (!entry.ok()) return FailPki(entry.status());
  PrintIssued(flags.folder, *entry, "made");
  return 0;
}

// Returns the exit code.
int SayProblems(const PkiList& list) {
  for (const std::string& problem : list.problems) std::cerr << "rollcall: " << problem << "\n";
  return list.problems.empty() ? 0 : 1;
}

int RenewAll(const PkiFlags& flags, int64_t now_s) {
  const absl::StatusOr<PkiList> list = ListPki(flags.folder, now_s);
  if (!list.ok()) return FailPki(list.status());
  int renewed = 0, exit_code = SayProblems(*list);
  for (const PkiEntry& entry : list->entries) {
    if (entry.state == PkiState::kRevoked || entry.expires_s > now_s + flags.within_days * kDayS) {
      continue;
    }
    const absl::StatusOr<PkiEntry> fresh =
        RenewInPki(flags.folder, entry.name, flags.days.value_or(0), now_s);
    if (!fresh.ok()) {
      exit_code = FailPki(fresh.status());
      continue;
    }
    std::cout << "renewed " << fresh->name << ", valid until " << DateOf(fresh->expires_s) << "\n";
    ++renewed;
  }
  std::cout << renewed << " of " << list->entries.size() << " renewed: those that expire within "
            << flags.within_days << " days. Programs take new files by themselves.\n";
  return exit_code;
}

int Renew(const PkiFlags& flags, int64_t now_s) {
  if (flags.all) return RenewAll(flags, now_s);
  const absl::StatusOr<PkiEntry> entry =
      RenewInPki(flags.folder, flags.name, flags.days.value_or(0), now_s);
  if (!entry.ok()) return FailPki(entry.status());
  PrintIssued(flags.folder, *entry, "renewed");
  return 0;
}

int RevokeCertificate(const PkiFlags& flags, int64_t now_s) {
  const absl::StatusOr<int> count = RevokeInPki(flags.folder, flags.name, now_s);
  if (!count.ok()) return FailPki(count.status());
  std::cout << "revoked " << *count << " certificate" << (*count == 1 ? "" : "s") << " of "
            << flags.name << " in " << flags.folder << "/ca.crl\n"
            << "rollcalld reads the list again by itself, if it runs with --tls-crl="
            << flags.folder << "/ca.crl\n";
  return 0;
}

int ListCertificates(const PkiFlags& flags, int64_t now_s) {
  const absl::StatusOr<PkiList> list = ListPki(flags.folder, now_s);
  if (!list.ok()) return FailPki(list.status());
  for (const PkiEntry& entry : list->entries) {
    const char* state = entry.state == PkiState::kRevoked   ? "revoked"
                        : entry.state == PkiState::kExpired ? "expired"
                                                            : "valid until";
    std::cout << absl::StrCat(entry.name, "  ", entry.role, "  ", state);
    if (entry.state != PkiState::kRevoked) std::cout << " " << DateOf(entry.expires_s);
    std::cout << "  " << entry.uri << "\n";
  }
  if (list->entries.empty()) std::cout << "no certificates in " << flags.folder << "\n";
  return SayProblems(*list);
}

struct Action {
  const char* name;
  bool needs_name;
  std::vector<std::string> flags;  // those that have a meaning
  int (*run)(const PkiFlags&, int64_t now_s);
};

const std::vector<Action>& Actions() {
  static const std::vector<Action> actions = {
      {"init", false, {"--domain", "--days"}, &Init},
      {"issue", false, {"--role", "--host", "--tenant", "--name", "--days"}, &Issue},
      {"renew", true, {"--all", "--within", "--days"}, &Renew},
      {"revoke", true, {}, &RevokeCertificate},
      {"list", false, {}, &ListCertificates},
  };
  return actions;
}

void AddPkiFlags(CLI::App* app, PkiFlags* flags) {
  std::vector<std::string> names;
  for (const Action& action : Actions()) names.push_back(action.name);
  app->add_option("ACTION", flags->action, "init, issue, renew, revoke or list")
      ->required()
      ->check(CLI::IsMember(names));
  app->add_option("DIR", flags->folder, "folder of the authority and its certificates")->required();
  app->add_option("NAME", flags->name, "renew, revoke: the name of the certificate's files");
  app->add_option("--role", flags->request.role,
                  "issue: what the holder may be: agent, viewer, operator or daemon");
  // One value for each flag, or the flag would take DIR, too.
  app->add_option("--host", flags->request.hosts,
                  "issue: host of an agent, or name or address of a daemon; repeat it for several")
      ->allow_extra_args(false);
  app->add_option("--tenant", flags->request.tenants,
                  "issue: tenant of the holder, or '*' for all; repeat it for several")
      ->allow_extra_args(false);
  app->add_option("--name", flags->request.name,
                  "issue: name of the files; without it the host of an agent, else the role");
  app->add_option("--days", flags->days,
                  "how long the certificate is valid; without it, 3650 for an authority, 365 for "
                  "others, and as long as before for a renewed one")
      ->check(CLI::PositiveNumber);
  app->add_option("--domain", flags->domain, "init: trust domain, as in spiffe://DOMAIN/")
      ->capture_default_str();
  app->add_flag("--all", flags->all, "renew: every certificate that expires soon");
  app->add_option("--within", flags->within_days, "renew --all: how soon, in days, such as 30d")
      ->transform([](std::string days) {
        if (!days.empty() && days.back() == 'd') days.pop_back();
        return days;
      })
      ->capture_default_str();
}

// A flag unknown to the action, or a missing name.
absl::Status CheckUsage(const CLI::App& app, const Action& action, const PkiFlags& flags) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool given = option->count() > 0 && absl::StartsWith(name, "--");
    const bool known =
        std::find(action.flags.begin(), action.flags.end(), name) != action.flags.end();
    if (given && !known) {
      return absl::InvalidArgumentError(
          absl::StrCat("pki ", action.name, " has no ", name, "; see rollcall pki --help"));
    }
  }
  const bool needs_name = action.needs_name && !flags.all;
  if (needs_name == flags.name.empty()) {
    return absl::InvalidArgumentError(
        needs_name
            ? absl::StrCat("pki ", action.name, " needs a NAME: rollcall pki list ", flags.folder)
            : absl::StrCat("pki ", action.name, " takes no NAME here: ", flags.name));
  }
  return absl::OkStatus();
}

}  // namespace

int PkiCommand(const std::vector<std::string>& arguments) {
  PkiFlags flags;
  CLI::App app("Makes certificates for daemons, agents and people, without another authority.",
               "rollcall pki");
  AddPkiFlags(&app, &flags);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  while (flags.folder.size() > 1 && flags.folder.back() == '/') flags.folder.pop_back();
  for (const Action& action : Actions()) {
    if (flags.action != action.name) continue;
    if (absl::Status status = CheckUsage(app, action, flags); !status.ok()) return FailPki(status);
    return action.run(flags, std::time(nullptr));
  }
  return kExitBadUsage;
}

}  // namespace rollcall
