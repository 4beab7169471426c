// SPDX-License-Identifier: Apache-2.0
// rollcall analyze: finds out from segment files, dumps of PyTorch's Flight
// Recorder, output of NCCL's RAS and logs, on any machine and at any later
// time, why a job hung. It applies the daemon's rules.
//
// Exit codes: 0 for no hang, 3 for a hang, 2 for bad input.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/collector/collector.h"
#include "agent/ras/ras_client.h"
#include "agent/redact_flag.h"
#include "base/clean_text.h"
#include "base/read_file.h"
#include "cli/analyze_inputs.h"
#include "cli/commands.h"
#include "cli/error_lines.h"
#include "cli/flight_recorder/import.h"
#include "cli/joint_findings.h"
#include "cli/segment_networks.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/last_sign.h"
#include "daemon/diagnosis/network_evidence.h"
#include "daemon/diagnosis/versions.h"
#include "daemon/jobs/job_store.h"
#include "daemon/ras/ras_output.h"
#include "daemon/report/html.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/json.h"
#include "daemon/report/report_text.h"
#include "daemon/report/state_table.h"
#include "daemon/words/evidence.h"

namespace rollcall {
namespace {

constexpr size_t kMostRasFiles = 64;

// How texts of the job are shown.
struct Redaction {
  std::shared_ptr<const Redactor> redactor;
  SendArguments arguments;
};

struct Input {
  JobStore store{"job"};
  int folders = 0;
  int segments = 0;
};

void ReadFolder(const std::string& folder, const Redaction& redaction, Input* input) {
  CollectorOptions options;
  options.directory = folder;
  options.live = false;
  options.redactor = redaction.redactor;
  options.send_arguments = redaction.arguments;
  Collector collector(options);
  const v1::Tick tick = collector.Collect(0, true);
  for (const std::string& note : collector.TakeWarnings())
    std::cerr << "rollcall: " << note << "\n";
  ++input->folders;
  input->segments += tick.processes_size();
  // Two hosts may have used the same process numbers.
  input->store.Apply(folder, tick, 0);
}

// The incident of one job and its state table. The incident has no verdicts if nothing is wrong.
struct AnalyzedJob {
  v1::Incident incident;
  std::string table;
  bool hangs = false;
  RankPlaces places;
};

using Findings = std::vector<AnalyzedJob>;

AnalyzedJob MakeFinding(const JobState& state, int64_t newest_ns, std::vector<Verdict> verdicts) {
  Incident incident;
  incident.id = absl::StrCat(state.key.job, "-1");
  incident.job = state.key;
  incident.verdicts = std::move(verdicts);
  incident.versions = VersionsInUse(state);
  AnalyzedJob finding;
  finding.hangs = !incident.verdicts.empty() && !IsWarning(incident.verdicts.front().cause);
  if (finding.hangs) {
    incident.state = IncidentState::kConfirmed;
    incident.opened_ns = incident.verdicts.front().since_ns;
    incident.confirmed_ns = newest_ns;
  }
  finding.incident = ToProto(incident);
  finding.incident.set_rollcall_version(ROLLCALL_VERSION);
  finding.table = StateTable(state);
  finding.places = PlacesOfRanks(state);
  return finding;
}

void PrintText(const AnalyzedJob& finding) {
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
void Print(const std::string& format, const Findings& findings) {
  const bool any = std::any_of(findings.begin(), findings.end(),
                               [](const AnalyzedJob& finding) { return finding.hangs; });
  for (const AnalyzedJob& finding : findings) {
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

void PrintNothingFound() {
  std::cerr << "rollcall analyze: found no readable segments (files like 4121-88012345.seg) in the "
               "given paths, no dumps of PyTorch's Flight Recorder and no output of NCCL's RAS\n"
               "  on each host, segments are in $ROLLCALL_DIR or /dev/shm/rollcall-<uid>\n"
               "  the name of a dump must end in its rank, like nccl_trace_rank_3\n";
}

// None if there is no readable segment.
std::optional<Findings> AnalyzeSegments(const std::set<std::string>& folders,
                                        const Redaction& redaction) {
  Input input;
  for (const std::string& folder : folders) ReadFolder(folder, redaction, &input);
  if (input.segments == 0) return std::nullopt;
  Findings findings;
  for (const JobKey& job : input.store.jobs().Keys()) {
    JobState state = input.store.Get(job);
    state.offline = true;
    const int64_t last_ns = LastSignNs(state);
    std::vector<Verdict> verdicts = Diagnose(state, last_ns, LimitsWithoutPatience());
    const std::vector<uint64_t> stalled = StalledCommunicators(verdicts);
    if (!stalled.empty()) {
      AddSegmentNetworks(folders, stalled, last_ns, &state);
      verdicts = Diagnose(state, last_ns, LimitsWithoutPatience());
    }
    findings.push_back(MakeFinding(state, last_ns, std::move(verdicts)));
  }
  return findings;
}

// Returns an error if no dump can be read, or if what damaged ones would have shown may be the
// hang.
absl::StatusOr<AnalyzedJob> AnalyzeDumps(const std::vector<std::string>& paths) {
  const absl::StatusOr<FlightRecorderInput> input = ImportFlightRecorder(paths);
  if (!input.ok()) return input.status();
  for (const std::string& warning : input->warnings) std::cerr << "rollcall: " << warning << "\n";
  const JobState& state = input->model.state();
  std::vector<Verdict> verdicts = Diagnose(state, input->newest_ns, LimitsWithoutPatience());
  AddDumpEvidence(*input, &verdicts);
  AnalyzedJob finding = MakeFinding(state, input->newest_ns, std::move(verdicts));
  if (input->damaged == 0 || finding.hangs) return finding;
  return absl::DataLossError(absl::StrCat(
      input->damaged,
      " of the dumps cannot be read, and the others show no hang: copy the dumps again"));
}

// RAS shows one moment of a job, which may be in good health.
AnalyzedJob AnalyzeRas(const std::vector<RasFinding>& ras) {
  JobModel model("ras");
  const std::string left_out = LeftOutInWords(FillModel(ras, &model));
  if (!left_out.empty()) std::cerr << "rollcall: " << left_out << "\n";
  std::vector<Verdict> verdicts = Diagnose(model.state(), 1, LimitsWithoutPatience());
  for (Verdict& verdict : verdicts) {
    verdict.certainty = Certainty::kPossible;
    for (std::string& line : verdict.evidence) {
      absl::StrReplaceAll({{kShownByMarkersOrHost, "by the number of calls that RAS counts"}},
                          &line);
    }
    verdict.missing_evidence.push_back("whether the job stands still: RAS shows one moment");
    if (!left_out.empty()) verdict.missing_evidence.push_back(left_out);
  }
  return MakeFinding(model.state(), 1, std::move(verdicts));
}

// RAS itself sends no longer answer, and a job has few: a folder may hold anything.
std::string ReadRasText(const std::string& path) {
  const size_t most = RasLimits().most_bytes;
  std::string text = ReadFile(path, most + 1).value_or("");
  if (text.size() > most) {
    std::cerr << "rollcall: " << CleanText(path) << ": only its first " << (most >> 20)
              << " MiB are read\n";
    text.resize(most);
  }
  return text;
}

std::vector<RasFinding> ReadRas(std::vector<std::string> paths) {
  if (paths.size() > kMostRasFiles) {
    std::cerr << "rollcall: of " << paths.size() << " files with output of RAS, the first "
              << kMostRasFiles << " are read\n";
    paths.resize(kMostRasFiles);
  }
  std::vector<RasFinding> all;
  for (const std::string& path : paths) {
    for (RasFinding& finding : ReadRasOutput(ReadRasText(path))) {
      all.push_back(std::move(finding));
    }
  }
  return all;
}

std::vector<ErrorLine> ReadLogs(const std::vector<std::string>& paths, const Redactor& redactor) {
  std::vector<ErrorLine> all;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    for (ErrorLine& error : FindFirstErrors(file, path, redactor)) all.push_back(std::move(error));
  }
  return all;
}

// The finding on the job that the other files are of: the one that hangs, else the first.
AnalyzedJob* JobOfFiles(Findings* findings) {
  const auto hanging = std::find_if(findings->begin(), findings->end(),
                                    [](const AnalyzedJob& finding) { return finding.hangs; });
  return hanging == findings->end() ? &findings->front() : &*hanging;
}

void Join(AnalyzedJob dumps, AnalyzedJob* segments) {
  const RankPlaces places = segments->places;
  if (!dumps.hangs && !segments->hangs) return;
  if (IsStronger(segments->incident, dumps.incident)) {
    AddOtherSource(dumps.incident, "the dumps of the Flight Recorder", &segments->incident);
    return;
  }
  AddOtherSource(segments->incident, "the segments", &dumps.incident);
  AddPlacesOfRanks(places, &dumps.incident);
  dumps.incident.set_job(segments->incident.job());
  dumps.table = absl::StrCat(segments->table, "\n", dumps.table);
  dumps.places = places;
  *segments = std::move(dumps);
}

// All files are of one job. None after an error, which it has printed.
std::optional<Findings> AnalyzeTogether(const std::vector<std::string>& paths,
                                        const Redaction& redaction) {
  AnalyzeInputs inputs;
  const absl::Status sorted = SortInputs(paths, &inputs);
  if (!sorted.ok()) {
    std::cerr << "rollcall analyze: " << sorted.message() << "\n";
    return std::nullopt;
  }
  std::optional<Findings> findings = AnalyzeSegments(inputs.folders, redaction);
  absl::StatusOr<AnalyzedJob> dumps = absl::NotFoundError("");
  if (!inputs.dumps.empty()) dumps = AnalyzeDumps(inputs.dumps);
  const bool lost = absl::IsDataLoss(dumps.status());
  if (lost) std::cerr << "rollcall analyze: " << dumps.status().message() << "\n";
  const std::vector<RasFinding> ras = ReadRas(inputs.ras);
  if (dumps.ok() && findings) {
    Join(*std::move(dumps), JobOfFiles(&*findings));
  } else if (dumps.ok()) {
    findings = Findings{*std::move(dumps)};
  } else if (!findings && !lost && !ras.empty()) {
    findings = Findings{AnalyzeRas(ras)};
  }
  if (!findings) {
    if (!lost) PrintNothingFound();
    return std::nullopt;
  }
  AnalyzedJob* finding = JobOfFiles(&*findings);
  if (!finding->hangs) return findings;
  for (const std::string& line : RasInWords(ras)) {
    finding->incident.mutable_verdicts(0)->add_evidence(line);
  }
  AddErrorLines(ReadLogs(inputs.logs, *redaction.redactor), finding->places, &finding->incident);
  return findings;
}

std::optional<Findings> AnalyzeOnlySegments(const std::vector<std::string>& paths,
                                            const Redaction& redaction) {
  std::set<std::string> folders;
  for (const std::string& path : paths) {
    const absl::Status status = AddSegmentFolders(path, &folders);
    if (status.ok()) continue;
    std::cerr << "rollcall analyze: " << status.message() << "\n";
    return std::nullopt;
  }
  std::optional<Findings> findings = AnalyzeSegments(folders, redaction);
  if (!findings) PrintNothingFound();
  return findings;
}

std::optional<Findings> AnalyzeOnlyDumps(const std::vector<std::string>& paths) {
  absl::StatusOr<AnalyzedJob> finding = AnalyzeDumps(paths);
  if (finding.ok()) return Findings{*std::move(finding)};
  std::cerr << "rollcall analyze: " << finding.status().message() << "\n";
  return std::nullopt;
}

}  // namespace

int AnalyzeCommand(const std::vector<std::string>& arguments) {
  std::string format = "text", from = "auto";
  std::vector<std::string> paths;
  CLI::App app(
      "Finds out from files why a job hung. Reads Rollcall's segments, dumps of PyTorch's Flight "
      "Recorder, output of NCCL's RAS and logs of one job together.",
      "rollcall analyze");
  app.add_option("--format", format, "output format: text, json or html")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "html"}));
  app.add_option("--from", from,
                 "kind of the input files: auto (any mix), segments or flight-recorder")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "segments", "flight-recorder"}));
  app.add_option("PATH", paths,
                 "segments, dumps, RAS output, logs, or folders that hold them, from any number of "
                 "hosts")
      ->required();
  RedactFlags redact;
  AddRedactFlags(&app, &redact);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const Redaction redaction = {MakeRedactor(redact), redact.send_arguments()};
  if (redaction.redactor == nullptr) return kExitBadUsage;

  const std::optional<Findings> findings = from == "auto" ? AnalyzeTogether(paths, redaction)
                                           : from == "segments"
                                               ? AnalyzeOnlySegments(paths, redaction)
                                               : AnalyzeOnlyDumps(paths);
  if (!findings) return kExitBadUsage;
  Print(format, *findings);
  return std::any_of(findings->begin(), findings->end(),
                     [](const AnalyzedJob& f) { return f.hangs; })
             ? kExitHangFound
             : 0;
}

}  // namespace rollcall
