// SPDX-License-Identifier: Apache-2.0
// rollcall analyze: finds out from segment files, or from dumps of PyTorch's
// Flight Recorder, on any machine and at any later time, why a job hung. It
// applies the daemon's rules.
//
// Exit codes: 0 for no hang, 3 for a hang, 2 for bad input.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/collector.h"
#include "agent/redact_flag.h"
#include "cli/commands.h"
#include "cli/flight_recorder/import.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/versions.h"
#include "daemon/report/html.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/json.h"
#include "daemon/report/report_text.h"
#include "daemon/report/state_table.h"
#include "daemon/server/job_store.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

// Adds every folder at or below `path` that holds segments. A user who copied folders from many
// hosts can therefore give their common parent. A segment's path adds its whole folder, because
// one rank alone shows little. Returns "" or the error.
std::string AddFolders(const std::string& path, std::set<std::string>* folders) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);  // counts a folder with two names once
  if (error == std::errc::no_such_file_or_directory) return "no such file or folder";
  if (error) return error.message();
  if (!fs::is_directory(real, error)) {
    if (!IsSegmentName(real.filename())) return "neither a folder nor the name of a segment";
    folders->insert(real.parent_path());
    return "";
  }
  for (auto at = fs::recursive_directory_iterator(
           real, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (IsSegmentName(at->path().filename())) folders->insert(at->path().parent_path());
  }
  return "";
}

struct Input {
  JobStore store{"job"};
  int64_t newest_ns = 0;
  int folders = 0;
  int segments = 0;
};

void ReadFolder(const std::string& folder, const std::shared_ptr<const Redactor>& redactor,
                Input* input) {
  CollectorOptions options;
  options.directory = folder;
  options.live = false;
  options.redactor = redactor;
  Collector collector(options);
  const v1::Tick tick = collector.Collect(0, true);
  for (const std::string& note : collector.TakeWarnings()) std::cerr << "rollcall: " << note << "\n";
  ++input->folders;
  input->segments += tick.processes_size();
  input->newest_ns = std::max(input->newest_ns, collector.newest_ns());
  // Two hosts may have used the same process numbers.
  input->store.Apply(folder, tick, 0);
}

// Offline, the length of a wait after the last record is unknown. So every open wait counts as a
// hang.
Limits NoPatience() {
  Limits limits;
  limits.hang_after_ns = 0;
  limits.suspect_after_ns = 0;
  limits.absent_for_good_ns = 0;
  return limits;
}

// The incident of one job and its state table. The incident has no verdicts if nothing is wrong.
struct Finding {
  v1::Incident incident;
  std::string table;
  bool hangs = false;
};

Finding MakeFinding(const JobState& state, int64_t newest_ns, std::vector<Verdict> verdicts) {
  Incident incident;
  incident.id = absl::StrCat(state.key.job, "-1");
  incident.job = state.key;
  incident.verdicts = std::move(verdicts);
  incident.versions = VersionsInUse(state);
  Finding finding;
  finding.hangs = !incident.verdicts.empty() && !IsWarning(incident.verdicts.front().cause);
  if (finding.hangs) {
    incident.state = IncidentState::kConfirmed;
    incident.opened_ns = incident.verdicts.front().since_ns;
    incident.confirmed_ns = newest_ns;
  }
  finding.incident = ToProto(incident);
  finding.incident.set_rollcall_version(ROLLCALL_VERSION);
  finding.table = StateTable(state);
  return finding;
}

void PrintText(const Finding& finding) {
  std::cout << "Job " << finding.incident.job() << "\n" << finding.table << "\n";
  if (finding.incident.verdicts().empty()) {
    std::cout << "no hang found\n";
  } else if (!finding.hangs) {
    for (const v1::Verdict& verdict : finding.incident.verdicts()) {
      std::cout << "no hang found, but: " << verdict.summary() << "\n";
    }
  } else {
    std::cout << ToText(finding.incident);
  }
}

// As JSON, prints one document for each job that hangs, or a single one if no job hangs.
void Print(const std::string& format, const std::vector<Finding>& findings) {
  const bool any = std::any_of(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.hangs; });
  for (const Finding& finding : findings) {
    if (format == "text") {
      PrintText(finding);
    } else if (format == "html" && finding.hangs) {
      std::cout << ToHtml(finding.incident);
    } else if (format == "json" && (finding.hangs || !any)) {
      std::cout << ToJson(finding.incident).value_or("{}") << "\n";
      if (!any) break;
    }
  }
  if (format == "html" && !any) std::cerr << "rollcall analyze: no hang found, no report written\n";
}

std::optional<std::vector<Finding>> AnalyzeSegments(
    const std::vector<std::string>& paths, const std::shared_ptr<const Redactor>& redactor) {
  std::set<std::string> folders;
  for (const std::string& path : paths) {
    const std::string wrong = AddFolders(path, &folders);
    if (wrong.empty()) continue;
    std::cerr << "rollcall analyze: " << path << ": " << wrong << "\n";
    return std::nullopt;
  }
  Input input;
  for (const std::string& folder : folders) ReadFolder(folder, redactor, &input);
  if (input.segments == 0) {
    std::cerr << "rollcall analyze: found no readable segments (files like 4121-88012345.seg) in "
                 "the given paths\n"
                 "  on each host, segments are in $ROLLCALL_DIR or /dev/shm/rollcall-<uid>\n"
                 "  for dumps of PyTorch's Flight Recorder, add --from=flight-recorder\n";
    return std::nullopt;
  }
  std::vector<Finding> findings;
  for (const JobKey& job : input.store.Keys()) {
    JobState state = input.store.Get(job);
    state.offline = true;
    findings.push_back(
        MakeFinding(state, input.newest_ns, Diagnose(state, input.newest_ns, NoPatience())));
  }
  return findings;
}

std::optional<std::vector<Finding>> AnalyzeDumps(const std::vector<std::string>& paths) {
  const absl::StatusOr<FlightRecorderInput> input = ImportFlightRecorder(paths);
  if (!input.ok()) {
    std::cerr << "rollcall analyze: " << input.status().message() << "\n";
    return std::nullopt;
  }
  for (const std::string& warning : input->warnings) std::cerr << "rollcall: " << warning << "\n";
  const JobState& state = input->model.state();
  std::vector<Verdict> verdicts = Diagnose(state, input->newest_ns, NoPatience());
  AddDumpEvidence(*input, &verdicts);
  std::vector<Finding> findings;
  findings.push_back(MakeFinding(state, input->newest_ns, std::move(verdicts)));
  // What a damaged dump would have shown may be the hang.
  if (input->damaged > 0 && !findings.front().hangs) {
    std::cerr << "rollcall analyze: " << input->damaged
              << " of the dumps cannot be read, and the others show no hang: copy the dumps again\n";
    return std::nullopt;
  }
  return findings;
}

}  // namespace

int AnalyzeCommand(const std::vector<std::string>& arguments) {
  std::string format = "text", from = "segments";
  std::vector<std::string> paths;
  CLI::App app(
      "Finds out from files why a job hung. Reads Rollcall's segments or dumps of PyTorch's "
      "Flight Recorder.",
      "rollcall analyze");
  app.add_option("--format", format, "output format: text, json or html")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "html"}));
  app.add_option("--from", from, "kind of the input files: segments or flight-recorder")
      ->capture_default_str()
      ->check(CLI::IsMember({"segments", "flight-recorder"}));
  app.add_option("PATH", paths,
                 "segments, dumps, or folders that hold them, from any number of hosts")
      ->required();
  std::vector<std::string> redact;
  AddRedactFlag(&app, &redact);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::shared_ptr<const Redactor> redactor = MakeRedactor(redact);
  if (redactor == nullptr) return kExitBadUsage;

  const std::optional<std::vector<Finding>> findings =
      from == "segments" ? AnalyzeSegments(paths, redactor) : AnalyzeDumps(paths);
  if (!findings) return kExitBadUsage;
  Print(format, *findings);
  return std::any_of(findings->begin(), findings->end(), [](const Finding& f) { return f.hangs; })
             ? kExitHangFound
             : 0;
}

}  // namespace rollcall
