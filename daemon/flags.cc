// SPDX-License-Identifier: Apache-2.0
#include "daemon/flags.h"

#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/duration_flag.h"
#include "base/durations.h"
#include "base/read_file.h"
#include "base/secret_file.h"
#include "base/user_names.h"
#include "base/watched_file.h"
#include "daemon/alerts/alert_routes.h"
#include "daemon/history/postgres_database.h"
#include "daemon/incidents/host_labels.h"
#include "net/address.h"
#include "net/listen_policy.h"
#include "security/web_config_file.h"
#include "service/version.h"

namespace rollcall {
namespace {

constexpr size_t kShortestToken = 32;  // of letters and digits: no attacker guesses it

// These end --help, in the form of cli/examples.cc.
constexpr char kExamples[] =
    "Examples:\n"
    "  rollcalld\n"
    "      serves the jobs and the page of this host\n"
    "  rollcalld --listen=0.0.0.0:7655 --tls-cert=d.crt --tls-key=d.key --token-file=tokens\n"
    "      serves agents on other hosts, over TLS, with the tokens of rollcall token";
constexpr char kNoReminder[] = "none";  // of --alert-reminder
constexpr char kConfigFile[] = "/etc/rollcall/daemon.yaml";

absl::StatusOr<std::string> ReadText(const char* flag, const std::string& path) {
  std::string text = ReadFile(path).value_or("");
  if (text.empty()) return absl::NotFoundError(absl::StrCat(flag, ": cannot read ", path));
  return text;
}

// A person who has this token is an owner of the daemon.
absl::StatusOr<std::string> ReadPageToken(const std::string& path) {
  const absl::StatusOr<std::string> token = ReadSecretFile(path, "token");
  if (!token.ok()) {
    return absl::Status(token.status().code(),
                        absl::StrCat("--http-token-file: ", token.status().message()));
  }
  if (token->size() >= kShortestToken && token->find_first_of("; ,\"\n") == std::string::npos) {
    return token;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--http-token-file: ", path, " holds no token of at least ", kShortestToken,
                   " letters and digits\n  create one:  (umask 077; openssl rand -hex 32 > ", path,
                   ")\n  or give each person a token that can be revoked:  rollcall token new, and "
                   "--token-file=FILE in place of --http-token-file"));
}

// Returns what guards the page: its own web.yml, too.
ListenGuards PageGuards(const DaemonOptions& options, const ListenGuards& guards) {
  ListenGuards page = guards;
  page.has_authenticator = page.has_authenticator || !options.http_token.empty();
  if (options.http_config.empty()) return page;
  WebConfigFile config(options.http_config);
  if (!config.Poll(time(nullptr)).ok()) return page;  // the page's start reports what is wrong
  const auto state = config.current();
  page.has_tls = page.has_tls || state->tls != nullptr;
  page.has_authenticator =
      page.has_authenticator || (state->passwords != nullptr && !state->passwords->empty());
  return page;
}

absl::Status CheckAddresses(const DaemonOptions& options, const DaemonSecurity& security) {
  const ListenGuards guards = {security.tls() != nullptr, security.KnowsRemoteCallers(),
                               security.is_insecure()};
  const absl::Status listen = CheckListen("--listen", options.listen, guards);
  if (!listen.ok()) return listen;
  return CheckListen("--http", options.http, PageGuards(options, guards));
}

// A unix socket has no port.
absl::Status CheckListenFlag(const std::string& listen) {
  if (absl::StartsWith(listen, "unix:")) return absl::OkStatus();
  return ParseAddress("--listen", listen).status();
}

void AddReportFlags(CLI::App* app, DaemonFlags* flags) {
  app->add_option("--report-dir", flags->options.report_dir, "folder for the reports")
      ->envname("ROLLCALL_REPORT_DIR")
      ->capture_default_str();
  app->add_option("--report-days", flags->report_days,
                  "days to keep reports after their last change")
      ->envname("ROLLCALL_REPORT_DAYS")
      ->capture_default_str()
      ->check(CLI::Range(1, 36500));
  app->add_option("--report-count", flags->report_count,
                  "limit of reports; the daemon deletes the oldest")
      ->envname("ROLLCALL_REPORT_COUNT")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000));
  app->add_option("--report-size", flags->report_mib,
                  "limit of all reports in MiB; the daemon deletes the oldest")
      ->envname("ROLLCALL_REPORT_SIZE")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
}

void AddLimitFlags(CLI::App* app, DaemonFlags* flags) {
  app->add_option("--max-jobs", flags->options.job_limits.jobs,
                  "limit of jobs, each attempt counted; the daemon ignores further ones")
      ->envname("ROLLCALL_MAX_JOBS")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-processes", flags->options.job_limits.processes,
                  "limit of processes of all jobs; the daemon ignores further ones")
      ->envname("ROLLCALL_MAX_PROCESSES")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000));
  app->add_option("--max-streams", flags->options.stream_limits.streams,
                  "limit of connected agents; the daemon refuses further ones")
      ->envname("ROLLCALL_MAX_STREAMS")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-streams-per-peer", flags->options.stream_limits.per_peer,
                  "limit of connected agents from one address of another machine")
      ->envname("ROLLCALL_MAX_STREAMS_PER_PEER")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--records-memory", flags->records_mib,
                  "memory for the call records of all jobs in MiB; more ranks keep fewer records "
                  "each")
      ->envname("ROLLCALL_RECORDS_MEMORY")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
}

void AddHttpFlags(CLI::App* app, DaemonFlags* flags) {
  app->add_option("--http-token-file", flags->http_token_file,
                  "file with the token that every HTTP request must carry; read at the start only")
      ->envname("ROLLCALL_HTTP_TOKEN_FILE");
  app->add_option("--http-max-connections", flags->options.http_connections,
                  "limit of simultaneous connections to the page; a new one replaces the slowest")
      ->envname("ROLLCALL_HTTP_MAX_CONNECTIONS")
      ->capture_default_str()
      ->check(CLI::Range(8, 100000));
  app->add_option("--http-config", flags->options.http_config,
                  "web.yml of Prometheus' exporters: TLS and users of the page")
      ->envname("ROLLCALL_HTTP_CONFIG");
  app->add_option("--http-host", flags->options.http_hosts,
                  "further name by which browsers reach the page")
      ->envname("ROLLCALL_HTTP_HOST");
}

void AddHistoryFlags(CLI::App* app, DaemonFlags* flags) {
  app->add_option("--history", flags->history,
                  "database file of all incidents, or none (default: --report-dir with .db added)")
      ->envname("ROLLCALL_HISTORY");
  app->add_option(
         "--store", flags->store,
         "postgresql://USER@HOST/DATABASE that several daemons share: history, and which daemon "
         "has which job; @FILE reads the URL from a file; a path is that of --history")
      ->envname("ROLLCALL_STORE");
  app->add_option("--daemon-name", flags->daemon_name,
                  "name of this daemon among those of --store (default: the host's name)")
      ->envname("ROLLCALL_DAEMON_NAME");
  app->add_option(
      "--import-history", flags->import_history,
      "copy the incidents of this database file (the --history of a daemon alone) into --store, "
      "print how many, and exit");
  app->add_option("--advertise", flags->options.advertise,
                  "HOST:PORT by which agents and the other daemons of --store reach this one "
                  "(default: --listen, with the host's name for 0.0.0.0)")
      ->envname("ROLLCALL_ADVERTISE");
  app->add_option("--history-days", flags->history_days, "days to keep incidents in the history")
      ->envname("ROLLCALL_HISTORY_DAYS")
      ->capture_default_str()
      ->check(CLI::Range(1, 36500));
  app->add_option("--history-size", flags->history_mib,
                  "limit of the history in MiB; the daemon deletes the oldest incidents")
      ->envname("ROLLCALL_HISTORY_SIZE")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--host-labels", flags->host_labels,
                  "file with lines HOST NAME=VALUE...: switches and racks, to find which of them "
                  "comes back")
      ->envname("ROLLCALL_HOST_LABELS");
}

std::string CheckReminder(const std::string& text) {
  return text == kNoReminder ? "" : CheckDuration(text);
}

void AddAlertFlags(CLI::App* app, DaemonFlags* flags) {
  app->add_option("--alert", flags->alerts,
                  "send confirmed hangs to KIND=TARGET: json, slack, teams, alertmanager, "
                  "cloudevents or kafka with a URL, pagerduty or opsgenie with a key, kubernetes "
                  "with a token, email with addresses, exec with a command; @FILE reads a secret "
                  "target")
      ->envname("ROLLCALL_ALERT");
  app->add_option("--alert-routes", flags->alert_routes,
                  "file with further receivers, and which incidents go to which")
      ->envname("ROLLCALL_ALERT_ROUTES");
  app->add_option("--alert-sendmail", flags->options.alerts.sendmail,
                  "program that sends alerts by email, called as PROGRAM -t -i")
      ->envname("ROLLCALL_ALERT_SENDMAIL")
      ->capture_default_str();
  app->add_option("--alert-from", flags->options.alerts.mail_from,
                  "address that sends alerts by email; without it, the program's own")
      ->envname("ROLLCALL_ALERT_FROM");
  app->add_option("--alerts-per-hour", flags->options.incident_quota.alerts,
                  "limit of alerts of a job; further ones become one alert")
      ->envname("ROLLCALL_ALERTS_PER_HOUR")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app->add_option("--incidents-per-hour", flags->options.incident_quota.incidents,
                  "limit of incidents of a job in the history and as reports")
      ->envname("ROLLCALL_INCIDENTS_PER_HOUR")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app->add_option(
         "--alert-template", flags->alert_template,
         "file with the body of json alerts; the daemon fills in {{summary}}, {{job}}, ...")
      ->envname("ROLLCALL_ALERT_TEMPLATE");
  app->add_option("--alert-reminder", flags->alert_reminder,
                  "time between reminders of a hang that is not acknowledged; none: no reminders")
      ->envname("ROLLCALL_ALERT_REMINDER")
      ->capture_default_str()
      ->check(CLI::Validator(CheckReminder, "TIME"));
  app->add_option("--runbook-url", flags->options.alerts.runbook,
                  "URL of your own runbooks, for links in alerts; {cause} stands for the cause")
      ->envname("ROLLCALL_RUNBOOK_URL");
  app->add_option("--page-url", flags->options.alerts.page,
                  "URL of the page for people: for links in alerts, and behind a proxy")
      ->envname("ROLLCALL_PAGE_URL");
}

void AddTimeFlags(CLI::App* app, DaemonFlags* flags) {
  AddJudgingFlags(app, &flags->judging);
  app->add_option("--keep-jobs", flags->keep_jobs, "how long to show a job after its end")
      ->envname("ROLLCALL_KEEP_JOBS")
      ->capture_default_str()
      ->check(CLI::Validator(CheckDuration, "TIME"));
}

void AddSecurityFlags(CLI::App* app, SecurityOptions* security) {
  app->add_option("--tls-cert", security->tls.certificate,
                  "file with the daemon's certificate and its chain, for agents and the page")
      ->envname("ROLLCALL_TLS_CERT");
  app->add_option("--tls-key", security->tls.key, "file with the key of --tls-cert")
      ->envname("ROLLCALL_TLS_KEY");
  app->add_option("--tls-client-ca", security->tls.authorities,
                  "file with the authority of clients' certificates, which name role and host")
      ->envname("ROLLCALL_TLS_CLIENT_CA");
  app->add_option("--tls-crl", security->tls.revocations,
                  "file with the revoked certificates of --tls-client-ca")
      ->envname("ROLLCALL_TLS_CRL");
  app->add_option("--trust-domain", security->trust_domains,
                  "DOMAIN in which names spiffe://DOMAIN/rollcall/ROLE of certificates count; "
                  "without it, every domain that --tls-client-ca signs")
      ->envname("ROLLCALL_TRUST_DOMAIN")
      ->delimiter(',');
  app->add_option("--token-file", security->token_file,
                  "file with the tokens of clients; see rollcall token new")
      ->envname("ROLLCALL_TOKEN_FILE");
  app->add_option("--jwks", security->jwks,
                  "file or URL with the keys of Kubernetes' service account tokens")
      ->envname("ROLLCALL_JWKS");
  app->add_option("--jwks-audience", security->jwks_audience,
                  "audience that these tokens must have")
      ->envname("ROLLCALL_JWKS_AUDIENCE")
      ->capture_default_str();
  app->add_option("--jwks-issuer", security->jwks_issuer, "issuer that these tokens must have")
      ->envname("ROLLCALL_JWKS_ISSUER");
  app->add_option("--jwks-ca", security->jwks_ca,
                  "file with the authority of the URL's certificate")
      ->envname("ROLLCALL_JWKS_CA");
  app->add_option("--jwks-token-file", security->jwks_token_file,
                  "file with the token to show at the URL; refused if others may read it")
      ->envname("ROLLCALL_JWKS_TOKEN_FILE");
  app->add_option("--grant", security->grants,
                  "ROLE=PATTERN[,tenant=T][,host=H]: role of certificates and service accounts "
                  "that other systems name")
      ->envname("ROLLCALL_GRANT");
  app->add_flag("--insecure", security->is_insecure,
                "let every client that reaches the daemon do everything")
      ->envname("ROLLCALL_INSECURE");
}

// The URL in a file that only its owner may read; the text itself without "@".
absl::StatusOr<std::string> ReadStoreUrl(const std::string& text) {
  if (!absl::StartsWith(text, "@")) return text;
  return ReadSecretFile(text.substr(1), "URL");
}

// Everybody on this host may read command lines.
bool IsInCommandLine(const std::string& text) {
  return absl::StrContains(ReadFile("/proc/self/cmdline").value_or(""), text);
}

std::string DaemonName(const std::string& name) {
  char host[256] = {};
  return name.empty() && gethostname(host, sizeof(host) - 1) == 0 ? std::string(host) : name;
}

absl::Status FillDatabase(const std::string& url, const DaemonFlags& flags,
                          const std::string& beside, DaemonOptions* options) {
  const auto shown = PostgresUrlInPublic(url);
  if (!shown.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--store: ", shown.status().message()));
  }
  if (!PasswordOfPostgresUrl(url).empty() && IsInCommandLine(url)) {
    return absl::InvalidArgumentError(
        "--store: every user of this host can see a password in a command line\n"
        "  instead:  --store=@FILE  with the URL, or PGPASSFILE=FILE, or the flag in the settings' "
        "file");
  }
  if (!flags.history.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--store=", *shown, " and --history=", flags.history,
                     " both set the place of the history: leave out one"));
  }
  options->database.url = url;
  options->database.daemon = DaemonName(flags.daemon_name);
  options->history = beside + ".spool.db";
  options->history_is_optional = false;
  return absl::OkStatus();
}

// Where the history is.
absl::Status FillStore(const DaemonFlags& flags, DaemonOptions* options) {
  const std::string beside(absl::StripSuffix(options->report_dir, "/"));
  const auto store = ReadStoreUrl(flags.store);
  if (!store.ok()) {
    return absl::Status(store.status().code(), absl::StrCat("--store: ", store.status().message()));
  }
  if (IsPostgresUrl(*store)) return FillDatabase(*store, flags, beside, options);
  if (!flags.import_history.empty()) {
    return absl::InvalidArgumentError(
        "--import-history copies into a database\n  name it:  "
        "--store=postgresql://USER@HOST:5432/DATABASE");
  }
  if (absl::StrContains(*store, "://") || absl::StartsWith(flags.store, "@")) {
    return absl::InvalidArgumentError(
        "--store: not a store\n  for example:  postgresql://USER@HOST:5432/DATABASE, or a path");
  }
  if (!store->empty() && !flags.history.empty()) {
    return absl::InvalidArgumentError(
        "--store and --history both set the place of the history: leave out one");
  }
  const std::string& file = store->empty() ? flags.history : *store;
  options->history = file.empty() ? beside + ".db" : file;
  if (file == "none") options->history.clear();
  // An unusable file stops the start only if the user named it.
  options->history_is_optional = file.empty();
  return absl::OkStatus();
}

// The limits of what the daemon keeps.
void FillLimits(const DaemonFlags& flags, DaemonOptions* options) {
  options->history_limits.keep_ns = int64_t{flags.history_days} * 86400 * kSecond;
  options->history_limits.keep_bytes = int64_t{flags.history_mib} << 20;
  options->keep_reports.keep_ns = int64_t{flags.report_days} * 86400 * kSecond;
  options->keep_reports.count = flags.report_count;
  options->keep_reports.bytes = flags.report_mib << 20;
  options->job_limits.record_bytes = flags.records_mib << 20;
  options->keep_ended_ns = DurationNs(flags.keep_jobs);
  options->remind_every_ns =
      flags.alert_reminder == kNoReminder ? 0 : DurationNs(flags.alert_reminder);
  options->limits = flags.judging.limits();
}

// Adds the receivers and routes of a file.
absl::Status AddRoutes(const std::string& path, AlertOptions* alerts) {
  const auto text = ReadText("--alert-routes", path);
  if (!text.ok()) return text.status();
  auto file = ParseAlertRoutes(*text);
  if (!file.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--alert-routes: ", path, ": ", file.status().message()));
  }
  const size_t before = alerts->targets.size();
  alerts->targets.insert(alerts->targets.end(), file->receivers.begin(), file->receivers.end());
  for (AlertRoute& route : file->routes) {
    for (size_t& receiver : route.to) receiver += before;
    alerts->routes.push_back(std::move(route));
  }
  return absl::OkStatus();
}

absl::Status FillHostLabels(const DaemonFlags& flags, DaemonOptions* options) {
  if (flags.host_labels.empty()) return absl::OkStatus();
  const auto text = ReadText("--host-labels", flags.host_labels);
  if (!text.ok()) return text.status();
  auto labels = ParseHostLabels(*text);
  if (!labels.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--host-labels: ", flags.host_labels, ": ", labels.status().message()));
  }
  options->host_labels = *std::move(labels);
  return absl::OkStatus();
}

absl::Status CheckSendmail(const AlertOptions& alerts) {
  for (const AlertTarget& target : alerts.targets) {
    if (target.kind != AlertKind::kEmail) continue;
    if (access(alerts.sendmail.c_str(), X_OK) == 0) continue;
    return absl::NotFoundError(absl::StrCat(
        "alerts by email need a program like sendmail, and cannot run ", alerts.sendmail,
        "\n  install one:  apt-get install msmtp-mta   (or Postfix, Exim, nullmailer)\n"
        "  or name it:   --alert-sendmail=/usr/bin/msmtp"));
  }
  return absl::OkStatus();
}

absl::Status FillAlerts(const DaemonFlags& flags, AlertOptions* alerts) {
  alerts->user_name = &UserName;
  for (const std::string& alert : flags.alerts) {
    const auto target = ParseAlertTarget(alert);
    if (!target.ok()) return target.status();
    alerts->targets.push_back(*target);
  }
  absl::Status status;
  if (!flags.alert_routes.empty()) status = AddRoutes(flags.alert_routes, alerts);
  if (status.ok()) status = CheckSendmail(*alerts);
  if (!status.ok() || flags.alert_template.empty()) return status;
  const auto text = ReadText("--alert-template", flags.alert_template);
  if (text.ok()) alerts->template_text = *text;
  return text.status();
}

}  // namespace

DaemonFlags::DaemonFlags() {
  options.listen = "127.0.0.1:7655";
  options.http = "127.0.0.1:7656";
  options.report_dir = "./rollcall-reports";
}

std::unique_ptr<CLI::App> MakeDaemonApp(DaemonFlags* flags) {
  auto made = std::make_unique<CLI::App>(
      "Finds out why training jobs hang. Compares the agents' reports and names the rank.",
      "rollcalld");
  CLI::App* const app = made.get();
  app->set_version_flag("--version", VersionLine("rollcalld"));
  app->footer(kExamples);
  AddServiceFlags(app, kConfigFile, &flags->service);
  app->add_option("--listen", flags->options.listen,
                  "address for agents and the command line, HOST:PORT")
      ->envname("ROLLCALL_LISTEN")
      ->capture_default_str();
  app->add_option("--http", flags->options.http,
                  "address for browsers and scripts, HOST:PORT, or none")
      ->envname("ROLLCALL_HTTP")
      ->capture_default_str();
  AddSecurityFlags(app, &flags->security);
  AddTimeFlags(app, flags);
  AddReportFlags(app, flags);
  AddHistoryFlags(app, flags);
  AddAlertFlags(app, flags);
  AddHttpFlags(app, flags);
  AddLimitFlags(app, flags);
  return made;
}

absl::StatusOr<DaemonOptions> MakeDaemonOptions(const DaemonFlags& flags) {
  DaemonOptions options = flags.options;
  if (options.http == "none") options.http.clear();
  absl::Status status = CheckListenFlag(options.listen);
  if (!status.ok()) return status;
  if (!flags.http_token_file.empty()) {
    auto token = ReadPageToken(flags.http_token_file);
    if (!token.ok()) return token.status();
    options.http_token = *std::move(token);
  }
  status = FillStore(flags, &options);
  if (!status.ok()) return status;
  FillLimits(flags, &options);
  status = FillHostLabels(flags, &options);
  if (status.ok()) status = FillAlerts(flags, &options.alerts);
  if (!status.ok()) return status;
  return options;
}

absl::StatusOr<std::unique_ptr<DaemonSecurity>> OpenDaemonSecurity(const DaemonFlags& flags,
                                                                   const DaemonOptions& options) {
  auto security = DaemonSecurity::Open(flags.security);
  if (!security.ok()) return security.status();
  const absl::Status status = CheckAddresses(options, **security);
  if (!status.ok()) return status;
  return security;
}

}  // namespace rollcall
