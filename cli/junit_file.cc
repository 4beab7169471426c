// SPDX-License-Identifier: Apache-2.0
#include "cli/junit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "agent/processes/unique_fd.h"
#include "proto/clean_text.h"

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

absl::Status Errno(const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("--junit: cannot write ", path, ": ", strerror(errno)));
}

absl::Status WriteInPlace(const std::string& path, const std::string& text) {
  // A FIFO without a reader must not hold up the job.
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return Errno(path);
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Errno(path);
  }
  return absl::OkStatus();
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
  const std::string message =
      absl::StrCat(EndInWords(run.exit_code), "; Rollcall saw no hang");
  return Suite(run.job, run.seconds, Outcome("error", "exit code", message, ""), false, true);
}

std::string JUnitTextOfUnended(const std::string& job) {
  return Suite(job, 0,
               Outcome("error", "not ended", "rollcall run did not come to its end", ""), false,
               true);
}

absl::Status WriteJUnitFile(const std::string& named, const std::string& text) {
  // A link stays one, and what is no file, as /dev/stdout, is written to and never replaced.
  char resolved[PATH_MAX];
  const std::string path =
      realpath(named.c_str(), resolved) != nullptr ? std::string(resolved) : named;
  struct stat about;
  if (stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) return WriteInPlace(path, text);
  const std::string unnamed = absl::StrCat(path, ".", getpid(), ".new");
  const UniqueFd fd(open(unnamed.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.valid()) return Errno(path);
  const ssize_t written = write(fd.get(), text.data(), text.size());
  if (written >= 0 && written != static_cast<ssize_t>(text.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(text.size()) || rename(unnamed.c_str(), path.c_str()) != 0) {
    const absl::Status failed = Errno(path);
    unlink(unnamed.c_str());
    return failed;
  }
  return absl::OkStatus();
}

}  // namespace rollcall
