// SPDX-License-Identifier: Apache-2.0
// rollcall silence: begins, ends and lists silences of alerts.
#include <CLI/CLI.hpp>
#include <iostream>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/duration_flag.h"
#include "base/durations.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/usage.h"
#include "daemon/access/clean_message.h"
#include "daemon/incidents/silences.h"
#include "daemon/report/incident_words.h"

namespace rollcall {
namespace {

struct SilenceFlags {
  QueryFlags query;
  std::string tenant, job, host, cause, comment;
  std::string length = "2h";
  std::string end;
};

const std::vector<std::string> kOfBeginning = {"--job",    "--host", "--cause",
                                               "--tenant", "--for",  "--comment"};

std::string CheckLength(const std::string& text) {
  const std::string problem = CheckDuration(text);
  if (!problem.empty()) return problem;
  const int64_t seconds = DurationNs(text) / kSecond;
  return seconds >= kShortestSilenceSeconds && seconds <= kLongestSilenceSeconds
             ? ""
             : text + " is not a time from 1m to 720h (30 days)";
}

void AddSilenceFlags(CLI::App* app, SilenceFlags* flags) {
  AddQueryFlags(app, &flags->query);
  app->add_option("--job", flags->job, "silence the alerts of this job; * stands for any text");
  app->add_option("--host", flags->host, "only of incidents with a culprit on this host");
  AddCauseFlag(app, &flags->cause, "only of this cause: missing_rank, rank_died, ...");
  app->add_option("--tenant", flags->tenant, "only of this tenant");
  app->add_option("--for", flags->length, "how long, from 1m to 720h")
      ->capture_default_str()
      ->check(CLI::Validator(CheckLength, "TIME"));
  app->add_option("--comment", flags->comment, "why");
  app->add_option("--end", flags->end, "end this silence now")->type_name("ID");
}

std::string InWords(const v1::Silence& silence) {
  const std::string comment =
      silence.comment().empty() ? "" : absl::StrCat(": ", silence.comment());
  return absl::StrCat(
      silence.id(), "  ",
      SilenceInWords(silence.tenant(), silence.job(), silence.host(), silence.cause(), ""),
      "; until ", TimeInWords(silence.until()), ", by ", silence.who(), comment, "; ",
      silence.incidents(), silence.incidents() == 1 ? " incident" : " incidents", " so far",
      silence.alerted_incidents() == 0
          ? ""
          : absl::StrCat(" (", silence.alerted_incidents(), " alerted before it began)"));
}

void PrintSilence(const v1::Silence& silence) { std::cout << InWords(silence) << "\n"; }

void PrintSilence(const v1::ListSilencesResponse& response) {
  for (const v1::Silence& silence : response.silences()) PrintSilence(silence);
  if (response.silences().empty()) std::cout << "no silences\n";
}

// Asks, and prints the answer. Returns the exit code.
template <typename Response, typename Call>
int AskAndPrint(const QueryFlags& flags, const Call& call) {
  constexpr bool kChanges = std::is_same_v<Response, v1::Silence>;
  Response response;
  DaemonQuery query(flags.daemon);
  const auto ask = [&](auto* stub, auto* context) { return call(stub, context, &response); };
  const bool answered = kChanges ? query.AskToChange("silence", ask) : query.Ask("silence", ask);
  if (!answered) return query.exit_code();
  CleanStrings(&response);
  if (flags.format == "json") {
    PrintJson(response);
  } else {
    PrintSilence(response);
  }
  return 0;
}

// What is wrong with the flags together, or empty.
std::string FindProblem(const SilenceFlags& flags, const std::vector<std::string>& arguments) {
  const std::string of_beginning = FirstTyped(arguments, kOfBeginning);
  if (IsTyped(arguments, "--end")) {
    if (flags.end.empty()) return "which one? --end=ID; to list them:  rollcall silence";
    return of_beginning.empty() ? "" : "--end only ends a silence: leave out " + of_beginning;
  }
  const bool says_what_for = !flags.job.empty() || !flags.host.empty() || !flags.cause.empty();
  if (of_beginning.empty() || says_what_for) return "";
  return "what is it for? Give --job=NAME, --host=NODE or --cause=CAUSE, too; --job='*' is all "
         "jobs";
}

int Begin(const SilenceFlags& flags) {
  v1::AddSilenceRequest request;
  request.mutable_silence()->set_tenant(flags.tenant);
  request.mutable_silence()->set_job(flags.job);
  request.mutable_silence()->set_host(flags.host);
  request.mutable_silence()->set_cause(flags.cause);
  request.mutable_silence()->set_comment(flags.comment);
  request.set_seconds(DurationNs(flags.length) / kSecond);
  return AskAndPrint<v1::Silence>(flags.query, [&](auto* stub, auto* context, auto* response) {
    return stub->AddSilence(context, request, response);
  });
}

int End(const SilenceFlags& flags) {
  v1::EndSilenceRequest request;
  request.set_id(flags.end);
  return AskAndPrint<v1::Silence>(flags.query, [&](auto* stub, auto* context, auto* response) {
    return stub->EndSilence(context, request, response);
  });
}

int List(const SilenceFlags& flags) {
  return AskAndPrint<v1::ListSilencesResponse>(
      flags.query, [](auto* stub, auto* context, auto* response) {
        return stub->ListSilences(context, v1::ListSilencesRequest(), response);
      });
}

}  // namespace

int SilenceCommand(const std::vector<std::string>& arguments) {
  SilenceFlags flags;
  CLI::App app("Holds back alerts for a time, or lists and ends such silences.",
               "rollcall silence");
  AddSilenceFlags(&app, &flags);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::string problem = FindProblem(flags, arguments);
  if (!problem.empty()) return RefuseUsage(app, problem);
  if (!flags.end.empty()) return End(flags);
  return FirstTyped(arguments, kOfBeginning).empty() ? List(flags) : Begin(flags);
}

}  // namespace rollcall
