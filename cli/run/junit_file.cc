// SPDX-License-Identifier: Apache-2.0
#include "cli/run/junit_file.h"

#include <signal.h>
#include <string.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/clean_text.h"

namespace rollcall {
namespace {

constexpr char kLineInAttribute[] = "&#10;";

// The signs that XML does not allow at all become those that CleanText() puts in their place.
std::string Escaped(const std::string& line) {
  return absl::StrReplaceAll(
      CleanText(line),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string EscapedLines(const std::string& text, const std::string& separator) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    const bool is_last = end == std::string::npos;
    if (is_last) end = text.size();
    absl::StrAppend(&out, Escaped(text.substr(begin, end - begin)), is_last ? "" : separator);
    begin = end + 1;
  }
  return out;
}

// `outcome`: the element for it, or "" for a pass.
std::string Suite(const std::string& job, double seconds, const std::string& outcome, bool failed,
                  bool wrong) {
  return absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n"
      "<testsuite name=\"rollcall run\" tests=\"1\" failures=\"%d\" errors=\"%d\" skipped=\"0\" "
      "time=\"%.3f\">\n"
      "<testcase classname=\"rollcall run\" name=\"%s\" time=\"%.3f\">%s</testcase>\n"
      "</testsuite>\n"
      "</testsuites>\n",
      failed ? 1 : 0, wrong ? 1 : 0, seconds, Escaped(job), seconds, outcome);
}

std::string Outcome(const char* element, const std::string& type, const std::string& message,
                    const std::string& text) {
  return absl::StrCat("\n<", element, " type=\"", Escaped(type), "\" message=\"",
                      EscapedLines(message, kLineInAttribute), "\">", EscapedLines(text, "\n"),
                      "</", element, ">\n");
}

struct SignalName {
  int number;
  const char* name;
};

constexpr SignalName kSignals[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
    {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},
};

constexpr int kAfterSignal = 128;  // what shells, and `rollcall run`, add to a signal's number

// "11 (SIGSEGV)"
std::string SignalInWords(int number) {
  for (const SignalName& known : kSignals) {
    if (known.number == number) return absl::StrCat(number, " (", known.name, ")");
  }
  return absl::StrCat(number);
}

// "killed by signal 11 (SIGSEGV), exit code 139"
std::string EndInWords(int exit_code) {
  const std::string code = absl::StrCat("exit code ", exit_code);
  if (exit_code == 126) return absl::StrCat("command not executable, ", code);
  if (exit_code == 127) return absl::StrCat("command not found, ", code);
  const int number = exit_code - kAfterSignal;
  if (number < 1 || number > SIGRTMAX) return absl::StrCat("the job ended with ", code);
  return absl::StrCat("killed by signal ", SignalInWords(number), ", ", code);
}

}  // namespace

std::string JUnitText(const JUnitRun& run) {
  if (run.exit_code == 0) {
    const std::string said =
        run.verdicts.empty()
            ? ""
            : absl::StrCat("\n<system-out>", EscapedLines(run.verdicts, "\n"), "</system-out>\n");
    return Suite(run.job, run.seconds, said, false, false);
  }
  if (!run.cause.empty()) {
    return Suite(run.job, run.seconds, Outcome("failure", run.cause, run.summary, run.verdicts),
                 true, false);
  }
  const std::string message = absl::StrCat(EndInWords(run.exit_code), "; Rollcall saw no hang");
  return Suite(run.job, run.seconds, Outcome("error", "exit code", message, ""), false, true);
}

std::string JUnitTextOfUnended(const std::string& job) {
  return Suite(job, 0, Outcome("error", "not ended", "rollcall run did not finish", ""), false,
               true);
}

}  // namespace rollcall
