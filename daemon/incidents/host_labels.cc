// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/host_labels.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/clean_text.h"
#include "base/utf8.h"

namespace rollcall {
namespace {

constexpr size_t kMostNameBytes = 40;
constexpr size_t kMostValueBytes = 120;

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                  c == '.';
         });
}

absl::Status Refuse(int line, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ": ", why, "\n  such a one:  node-17 switch=leaf-3 rack=r12"));
}

absl::Status AddLine(int number, absl::string_view line, HostLabels* labels) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  if (words.size() == 1)
    return Refuse(number, absl::StrCat(CleanText(std::string(words[0])), " has no label"));
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> label =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (!IsName(label.first) || label.second.empty() || label.second.size() > kMostValueBytes ||
        !IsUtf8({label.second.data(), label.second.size()})) {
      return Refuse(number,
                    absl::StrCat("\"", CleanText(std::string(words[i])), "\" is not NAME=VALUE"));
    }
    (*labels)[std::string(words[0])][std::string(label.first)] =
        CleanText(std::string(label.second));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HostLabels> ParseHostLabels(const std::string& text) {
  HostLabels labels;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::Status status = AddLine(++number, line, &labels);
    if (!status.ok()) return status;
  }
  return labels;
}

void SetHostLabels(const HostLabels& labels, v1::Incident* incident) {
  incident->clear_host_labels();
  if (incident->verdicts().empty()) return;
  const v1::Verdict& root = incident->verdicts(0);
  std::set<std::string> hosts(root.other_culprit_hosts().begin(), root.other_culprit_hosts().end());
  for (const v1::Culprit& culprit : root.culprits()) hosts.insert(culprit.host());
  for (const std::string& host : hosts) {
    const auto known = labels.find(host);
    if (known == labels.end()) continue;
    for (const auto& [name, value] : known->second) {
      v1::HostLabel* const label = incident->add_host_labels();
      label->set_host(host);
      label->set_name(name);
      label->set_value(value);
    }
  }
}

}  // namespace rollcall
