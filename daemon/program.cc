// SPDX-License-Identifier: Apache-2.0
#include "daemon/program.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clean_stream.h"
#include "base/descriptors.h"
#include "base/log/limited_log.h"
#include "daemon/access/daemon_security.h"
#include "daemon/daemon.h"
#include "daemon/flags.h"
#include "daemon/history/history_import.h"
#include "daemon/history/postgres_history.h"
#include "daemon/history/sqlite_history.h"
#include "daemon/report/writer.h"
#include "net/grpc_server.h"
#include "security/grpc/quiet_log.h"
#include "service/exhaustion.h"
#include "service/journal_sink.h"
#include "service/service_flags.h"
#include "service/service_loop.h"
#include "service/service_manager.h"

namespace rollcall {
namespace {

// Measured with an agent and a page, and a margin (docs/measured_history.md).
constexpr ResourceNeeds kNeeds = {uint64_t{96} << 20, 44, 64};

constexpr int64_t kTellOfIncidents = 1000;  // an import logs it each time

int Fail(const absl::Status& status, int code) {
  std::cerr << "rollcalld: " << status.message() << "\n";
  return code;
}

void WarnIfInsecure(const DaemonOptions& options, const DaemonSecurity& security) {
  if (!security.is_insecure()) return;
  spdlog::warn("--insecure: every client that reaches {} or {} may read all jobs and take stacks",
               options.listen, options.http.empty() ? "no page" : options.http);
}

// The address of agents, with the port that was free if the flag is 0.
std::string ListenAddress(const std::string& listen, const Daemon& daemon) {
  if (absl::StartsWith(listen, "unix:")) return listen;
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", daemon.grpc_port());
}

void PrintImported(const ImportCounts& counts, std::ostream* out) {
  *out << "copied " << counts.incidents << " incidents (" << counts.known
       << " were there already), the hosts and attempts of " << counts.jobs << " jobs, and "
       << counts.silences << " silences\n";
}

// No other thread waits for an import, and a busy server may need long.
constexpr std::chrono::seconds kImportConnectsWithin{30};

// Copies the history in `file` into the database. Says on stderr how far it is.
int Import(const std::string& file, const DaemonOptions& options) {
  const auto from = SqliteHistory::OpenExisting(file);
  if (!from.ok()) return Fail(from.status(), 1);
  PostgresOptions database = options.database;
  database.times.connect = kImportConnectsWithin;
  const auto to = PostgresHistory::Open(database, options.history_limits);
  if (!to.ok()) return Fail(to.status(), 1);
  int64_t told = 0;
  const auto progress = [&told](const ImportCounts& counts) {
    const int64_t seen = counts.incidents + counts.known;
    if (seen - told < kTellOfIncidents) return;
    told = seen;
    std::cerr << "rollcalld: so far ";
    PrintImported(counts, &std::cerr);
  };
  const auto counts = ImportHistory(**from, to->get(), progress);
  if (!counts.ok()) {
    return Fail(absl::Status(counts.status().code(),
                             absl::StrCat("the import has stopped: ", counts.status().message(),
                                          "\n  go on:  the same command again")),
                1);
  }
  PrintImported(*counts, &std::cout);
  for (const std::string& id : counts->clashes) {
    std::cerr << "rollcalld: left out " << id << ": the database has another incident of this id\n";
  }
  return 0;
}

// Reads command line, environment and file again.
class Reloader {
 public:
  Reloader(int argc, char** argv, FlagValues values)
      : argc_(argc), argv_(argv), values_(std::move(values)) {}

  void Reload(Daemon* daemon) {
    DaemonFlags flags;
    const auto app = MakeDaemonApp(&flags);
    absl::Status status = ParseServiceFlagsAgain(argc_, argv_, app.get(), flags.service);
    const auto options = MakeDaemonOptions(flags);
    if (status.ok()) status = options.status();
    if (!status.ok()) {
      spdlog::error("keeping the flags as they were: {}", std::string(status.message()));
      return;
    }
    const FlagValues values = ValuesOf(*app);
    LogReloaded(ChangedFlags(values_, values), kLiveFlags);
    daemon->incidents()->SetQuota(options->incident_quota);
    daemon->incidents()->SetHostLabels(options->host_labels);
    for (const std::string& name : kLiveFlags) values_[name] = values.at(name);
  }

 private:
  // Certificates, tokens, keys, web.yml and alerts' @FILEs are read again when they change, without
  // a reload.
  inline static const std::vector<std::string> kLiveFlags = {"alerts-per-hour",
                                                             "incidents-per-hour"};

  const int argc_;
  char** const argv_;
  FlagValues values_;  // that count
};

int Serve(const sigset_t& signals, Reloader* reloader, DaemonOptions options,
          ServiceManager* manager) {
  options.alerts.open_files = RaiseDescriptorLimit();
  Daemon daemon(options);
  const absl::Status status = daemon.Start();
  if (!status.ok()) return Fail(status, 1);
  const std::string listen = ListenAddress(options.listen, daemon);
  spdlog::info("agents on {}, pages on {}, reports in {}", listen,
               options.http.empty() ? "none" : daemon.page_url(), options.report_dir);
  ServiceLoop loop;
  loop.reload = [&] { reloader->Reload(&daemon); };
  loop.is_alive = [&daemon] { return daemon.IsAlive(); };
  loop.status = [&] { return absl::StrCat("agents on ", listen, ": ", daemon.agents()); };
  RunUntilStopped(signals, loop, manager);
  spdlog::info("stopping");
  daemon.Stop();
  spdlog::default_logger()->flush();
  return ExitCodeOfService();
}

}  // namespace

int RunDaemon(int argc, char** argv) {
  CleanErrors();
  EndInOrderWhenExhausted("rollcalld");
  const sigset_t signals = BlockServiceSignals();
  signal(SIGPIPE, SIG_IGN);
  ServiceManager manager = ServiceManager::FromEnvironment();
  SilenceGrpc();
  ReadIntoSmallBuffers();
  LogWithLimits("rollcalld", MakeServiceSink());

  DaemonFlags flags;
  const auto app = MakeDaemonApp(&flags);
  if (const auto end = ParseServiceFlags(argc, argv, app.get(), flags.service)) {
    return *end;
  }
  if (!flags.service.check_config) {
    const absl::Status enough = CheckLimits("rollcalld", kNeeds, LimitsOfThisProcess());
    if (!enough.ok()) return Fail(enough, kOutOfResources);
  }
  const bool is_check = flags.service.check_config;
  const int code = is_check ? kWrongSettings : 1;
  auto options = MakeDaemonOptions(flags);
  if (!options.ok()) return Fail(options.status(), code);
  if (!is_check && !flags.import_history.empty()) return Import(flags.import_history, *options);
  if (!is_check) {
    const absl::Status writable = CheckReportDir(options->report_dir);
    if (!writable.ok()) return Fail(writable, code);
  }
  const auto security = OpenDaemonSecurity(flags, *options);
  if (!security.ok()) return Fail(security.status(), code);
  if (is_check) {
    std::cout << SayUsable("rollcalld", flags.service) << "\n";
    return 0;
  }
  options->authenticator = &(*security)->authenticator();
  options->security = security->get();
  WarnIfInsecure(*options, **security);
  Reloader reloader(argc, argv, ValuesOf(*app));
  return Serve(signals, &reloader, *std::move(options), &manager);
}

}  // namespace rollcall
