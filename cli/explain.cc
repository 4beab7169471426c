// SPDX-License-Identifier: Apache-2.0
// rollcall explain: explains what the well-known lines of a job's log mean.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean_text.h"
#include "cli/commands.h"
#include "cli/explained/explained_lines.h"
#include "cli/terminal.h"
#include "daemon/report/wrap.h"

namespace rollcall {
namespace {

constexpr int kExitNothingKnown = 1;

// Whether the word, which names no file, was meant to: no line of a log looks so.
bool LooksLikePath(const std::string& word) {
  if (word.find_first_of(" \t\n") != std::string::npos) return false;
  for (const char* ending : {".log", ".txt", ".out", ".err"}) {
    if (absl::EndsWith(word, ending)) return true;
  }
  return absl::StrContains(word, "/");
}

// Whether the words are files rather than one line, as the shell makes of "*.log".
bool AreFiles(const std::vector<std::string>& words) {
  std::error_code problem;
  return words.size() > 1 && std::all_of(words.begin(), words.end(), [&](const std::string& word) {
           return LooksLikePath(word) || std::filesystem::is_regular_file(word, problem);
         });
}

// Text from the command line, a file, or stdin. False after an error, which this function has
// printed.
bool Explain(const std::vector<std::string>& words, ExplainedLog* found) {
  const std::string name = absl::StrJoin(words, " ");
  if (name == "-" || (name.empty() && isatty(STDIN_FILENO) == 0)) {
    *found = ExplainLines(std::cin);
    return true;
  }
  if (name.empty()) {
    std::cerr << "rollcall explain: nothing to explain\n"
                 "  usage:  rollcall explain \"A LINE\"  |  rollcall explain FILE  |  CMD 2>&1 | "
                 "rollcall explain\n";
    return false;
  }
  if (AreFiles(words)) {
    std::cerr << "rollcall explain: one file at a time\n"
                 "  many:               cat FILE... | rollcall explain\n"
                 "  all logs of a job:  rollcall analyze FOLDER\n";
    return false;
  }
  std::error_code problem;
  if (!std::filesystem::exists(name, problem) && LooksLikePath(name)) {
    std::cerr << "rollcall explain: no such file: " << CleanText(name)
              << "\n  a line of a log?  CMD 2>&1 | rollcall explain\n";
    return false;
  }
  if (!std::filesystem::exists(name, problem)) {
    std::istringstream text(name);
    *found = ExplainLines(text);
    return true;
  }
  std::ifstream file(name);
  if (!std::filesystem::is_directory(name, problem) && file.is_open()) {
    *found = ExplainLines(file);
    return true;
  }
  const bool is_folder = std::filesystem::is_directory(name, problem);
  std::cerr << "rollcall explain: cannot read " << CleanText(name) << ": "
            << (is_folder ? "it is a folder" : strerror(errno))
            << (is_folder ? "\n  all logs of a job:  rollcall analyze FOLDER\n" : "\n");
  return false;
}

void AddParagraph(const char* title, const char* text, std::vector<StatusLine>* lines) {
  if (*text == '\0') return;
  std::istringstream wrapped(Wrap(absl::StrCat("  ", title), "    ", text));
  for (std::string line; std::getline(wrapped, line);) lines->push_back({line});
}

std::vector<StatusLine> LinesOfLog(const std::vector<ExplainedLine>& found) {
  std::vector<StatusLine> lines;
  for (const ExplainedLine& one : found) {
    if (!lines.empty()) lines.push_back({});
    const std::string times = one.count > 1 ? absl::StrCat(", ", one.count, " times") : "";
    lines.push_back(
        {absl::StrCat("[", one.explanation->id, "] line ", one.line, times), LineStyle::kTitle});
    lines.push_back({absl::StrCat("  ", one.text), LineStyle::kSoft});
    AddParagraph("Meaning: ", one.explanation->means, &lines);
    AddParagraph("Beware: ", one.explanation->beware, &lines);
    AddParagraph("Next: ", one.explanation->run, &lines);
    AddParagraph("Source: ", one.explanation->source, &lines);
  }
  return lines;
}

void PrintAsJson(const std::vector<ExplainedLine>& found) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ExplainedLine& one : found) {
    const Explanation& row = *one.explanation;
    all.push_back({{"id", row.id},
                   {"line", one.line},
                   {"count", one.count},
                   {"text", one.text},
                   {"means", row.means},
                   {"beware", row.beware},
                   {"run", row.run},
                   {"source", row.source}});
  }
  std::cout << all.dump(2) << "\n";
}

void WarnOfEndlessLine(const ExplainedLog& log) {
  if (log.endless_line == 0) return;
  std::cerr << "rollcall explain: line " << log.endless_line << " does not end within "
            << (kEndlessLine >> 20)
            << " MiB; it and what follows was not read\n"
               "  progress bars end no line:  tr '\\r' '\\n' < FILE | rollcall explain\n";
}

}  // namespace

int ExplainCommand(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  std::string format = "text";
  CLI::App app(
      "Explains the well-known lines of a job's log, and what to run next:\n"
      "rollcall explain \"A LINE\", rollcall explain FILE, or with a log on stdin.",
      "rollcall explain");
  app.add_option("--format", format, "output format: text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("TEXT|FILE", words, "a line, or a file with a log; -: stdin");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  ExplainedLog found;
  if (!Explain(words, &found)) return kExitBadUsage;
  if (format == "json") {
    PrintAsJson(found.lines);
  } else {
    PrintLines(LinesOfLog(found.lines));
  }
  WarnOfEndlessLine(found);
  if (!found.lines.empty()) return 0;
  std::cerr << "rollcall explain: no line of this log is known to Rollcall\n"
               "  the first error of each rank:  rollcall analyze FOLDER\n";
  return kExitNothingKnown;
}

}  // namespace rollcall
