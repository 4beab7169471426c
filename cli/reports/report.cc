// SPDX-License-Identifier: Apache-2.0
// rollcall report: prints the report of one incident, or writes it to a folder. The incident is a
// daemon's, or that of a report on disk, which needs no daemon.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/reports/incident_reader.h"
#include "cli/reports/report_on_disk.h"
#include "cli/reports/trace.h"
#include "cli/usage.h"
#include "daemon/report/anonymize.h"
#include "daemon/report/html.h"
#include "daemon/report/json.h"
#include "daemon/report/report_files.h"
#include "daemon/report/report_text.h"
#include "daemon/report/stacks_text.h"
#include "daemon/report/writer.h"

namespace rollcall {
namespace {

struct ReportFlags {
  QueryFlags query;
  std::string id, folder, map_file, trace, ranks;
  bool anonymize = false;
};

void DefineFlags(CLI::App* app, ReportFlags* flags) {
  AddDaemonFlags(app, &flags->query.daemon);
  app->add_option("--format", flags->query.format, "output format: text, stacks, json or html")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "stacks", "json", "html"}));
  app->add_option("--report-dir", flags->folder,
                  "write the whole report to a new folder below this one");
  auto* anonymize = app->add_flag(
      "--anonymize", flags->anonymize,
      "replace names of hosts, jobs, users, files, communicators and GPUs, pids and the messages "
      "of exceptions, to show the report to others");
  app->add_option("--keep-map", flags->map_file,
                  "with --anonymize: write the names behind the replacements to this new file")
      ->needs(anonymize);
  auto* trace = app->add_option(
      "--trace", flags->trace,
      "write the recorded calls of the job to this file, for Perfetto (ui.perfetto.dev) or "
      "chrome://tracing, instead of the report");
  app->add_option("--rank", flags->ranks,
                  "with --trace: the calls of these ranks, for example 0-3,7, at most 64; without "
                  "it, of culprits, then of waiting ranks, then of the lowest")
      ->needs(trace);
  app->add_option("ID|FOLDER", flags->id,
                  "the id of the incident, from `rollcall incidents`, or the folder of a report on "
                  "disk, which needs no daemon")
      ->required();
}

// Creates the file for its owner only. False after an error, which this function has printed.
bool WriteMap(const std::string& path, const Pseudonyms& names) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    std::cerr << "rollcall report: cannot create " << path << ": " << strerror(errno)
              << "; give --keep-map a new file in a folder where you may write\n";
    return false;
  }
  const std::string text = nlohmann::json(names.Map()).dump(2) + "\n";
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(fd) == 0 && written) return true;
  std::cerr << "rollcall report: cannot write " << path << ": " << strerror(errno) << "\n";
  return false;
}

void PrintReport(const std::string& format, const v1::Incident& incident) {
  if (format == "json") {
    std::cout << ToJson(incident).value_or("{}") << "\n";
  } else if (format == "html") {
    std::cout << ToHtml(incident);
  } else if (format == "stacks") {
    std::cout << StacksToText(incident);
  } else {
    std::cout << ToText(incident);
  }
}

// Returns the exit code.
int WriteFolder(const ReportFlags& flags, const v1::Incident& incident) {
  const ReportPlace place = flags.anonymize ? ReportPlace::kFolderName : ReportPlace::kPath;
  const auto written = CreateReport(flags.folder, incident, place);
  const absl::Status status = written.ok() ? SyncReport(*written) : written.status();
  if (!status.ok()) {
    std::cerr << "rollcall: cannot write the report: " << status.message() << "\n";
    return 1;
  }
  std::cout << *written << "\n";
  return 0;
}

// The ranks of --rank, else the usual ones. False after an error, which this function has printed.
bool ChooseRanks(const ReportFlags& flags, const v1::Incident& incident,
                 std::vector<int32_t>* ranks) {
  *ranks = flags.ranks.empty() ? RanksForTrace(incident) : ParseTraceRanks(flags.ranks);
  if (!ranks->empty()) return true;
  std::cerr << "rollcall report: --rank=" << flags.ranks
            << ": not a list of at most 64 ranks in ascending order\n"
               "  for example:  --rank=0-3,7\n";
  return false;
}

// What makes no sense for a report on disk, or empty.
std::string WrongOnDisk(const ReportFlags& flags) {
  if (!IsReportPath(flags.id) || flags.trace.empty()) return "";
  return "--trace needs the recorded calls, which a report does not have: give the id of the incident";
}

}  // namespace

int ReportCommand(const std::vector<std::string>& arguments) {
  ReportFlags flags;
  CLI::App app("Prints the report of one incident, or writes it to a folder.", "rollcall report");
  DefineFlags(&app, &flags);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  if (IsTyped(arguments, "--format") && (!flags.folder.empty() || !flags.trace.empty())) {
    return RefuseUsage(app,
                       "--format is of the report that is printed; --report-dir writes all "
                       "formats, and --trace has one of its own: leave out --format");
  }
  if (const std::string wrong = WrongOnDisk(flags); !wrong.empty()) return RefuseUsage(app, wrong);
  v1::Incident incident;
  TraceRequest trace = {flags.trace, {}, !flags.ranks.empty(), {!flags.anonymize}};
  // Bad ranks fail before a daemon is asked.
  if (!flags.ranks.empty() && !ChooseRanks(flags, incident, &trace.ranks)) return kExitBadUsage;
  IncidentReader reader("report", flags.query.daemon);
  if (!reader.Read(flags.id, &incident)) return reader.exit_code();
  const v1::Incident named = incident;
  if (flags.anonymize) {
    Pseudonyms names;
    Anonymize(&incident, &names);
    if (!flags.map_file.empty() && !WriteMap(flags.map_file, names)) return 1;
  }
  if (!flags.trace.empty()) {
    ChooseRanks(flags, named, &trace.ranks);
    const int traced = WriteTrace(trace, &reader.daemon(), named, incident);
    if (traced != 0 || flags.folder.empty()) return traced;
  }
  if (!flags.folder.empty()) return WriteFolder(flags, incident);
  PrintReport(flags.query.format, incident);
  return 0;
}

}  // namespace rollcall
