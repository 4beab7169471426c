// SPDX-License-Identifier: Apache-2.0
// An alert as a mail: RFC 5322, RFC 2045 and 2047 for text that is not ASCII, RFC 3834 against
// answers of machines. The program that sends the mail adds Date, and From where it is missing.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/cut_text.h"
#include "base/digest/digest.h"
#include "daemon/alerts/alert_messages.h"

namespace rollcall {
namespace {

constexpr size_t kLongestMailFact = 500;
constexpr size_t kLongestMailText = 3000;
constexpr size_t kLongestSubject = 200;
constexpr size_t kBytesOfWord = 45;  // an encoded word has at most 75 characters
constexpr size_t kLineOfBody = 76;

// Texts come from jobs, and may be invalid UTF-8.
std::string AsUtf8(const std::string& text) {
  return nlohmann::json::parse(DumpJson(text)).get<std::string>();
}

// The text of a header that is not an address. An encoded word ends no line, whatever a job wrote.
std::string EncodeHeader(const std::string& text) {
  const bool is_plain =
      text.find("=?") == std::string::npos &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
  if (is_plain) return text;
  std::string encoded;
  for (std::string rest = text; !rest.empty();) {
    const std::string part = CutText(rest, kBytesOfWord);
    absl::StrAppend(&encoded, encoded.empty() ? "" : "\n ", "=?UTF-8?B?", absl::Base64Escape(part),
                    "?=");
    rest = rest.substr(part.size());
  }
  return encoded;
}

// Equal for the mails of all receivers, and after a restart. Two daemons may have incidents of one
// id, hence the time.
std::string MessageId(const AlertMessage& message, int32_t sequence) {
  const v1::Incident& incident = message.incident;
  const std::string digest = Sha256Hex(absl::StrCat(
      incident.id(), " ", incident.opened_at().seconds(), " ", incident.opened_at().nanos()));
  return absl::StrCat("<", digest.substr(0, 32), ".", sequence, "@rollcall.invalid>");
}

// Returns one subject for all mails of an incident: some programs look at it to find the thread.
std::string Subject(const AlertValues& values, const AlertMessage& message) {
  const std::string attempt = ValueOf(values, "attempt");
  return OneLine(absl::StrCat("[rollcall] ", ValueOf(values, "job"),
                              attempt == "0" ? "" : absl::StrCat(", attempt ", attempt), " hangs: ",
                              message.first_cause, " (", ValueOf(values, "incident"), ")"),
                 kLongestSubject);
}

std::string Text(const AlertValues& values, AlertEvent event) {
  std::string text = absl::StrCat(OneLine(ValueOf(values, "headline"), kLongestMailText), "\n\n");
  for (const auto& [title, value] : FactsInWords(values, kLongestMailFact)) {
    absl::StrAppend(&text, title, ": ", value, "\n");
  }
  for (const auto& [title, name] : {std::pair("Advice", "advice"), std::pair("Report", "report")}) {
    const std::string value = OneLine(ValueOf(values, name), kLongestMailText);
    if (!value.empty()) absl::StrAppend(&text, "\n", title, ": ", value, "\n");
  }
  for (const auto& [title, link] : LinksInWords(values, event)) {
    absl::StrAppend(&text, "\n", title, ": ", OneLine(link, kLongestMailText), "\n");
  }
  return text;
}

std::string EncodeBody(const std::string& text) {
  const std::string encoded = absl::Base64Escape(text);
  std::string lines;
  for (size_t at = 0; at < encoded.size(); at += kLineOfBody) {
    absl::StrAppend(&lines, encoded.substr(at, kLineOfBody), "\n");
  }
  return lines;
}

}  // namespace

std::string AlertMail(const std::string& to, const std::string& from, const AlertValues& values,
                      const AlertMessage& message) {
  const bool is_first = message.event == AlertEvent::kConfirmed;
  const std::string first = MessageId(message, message.first_sequence);
  std::string mail = absl::StrCat("To: ", to, "\n");
  if (!from.empty()) absl::StrAppend(&mail, "From: ", from, "\n");
  absl::StrAppend(
      &mail, "Subject: ", is_first ? "" : "Re: ", EncodeHeader(AsUtf8(Subject(values, message))),
      "\n", "Message-ID: ", is_first ? first : MessageId(message, message.sequence), "\n");
  if (!is_first) absl::StrAppend(&mail, "In-Reply-To: ", first, "\nReferences: ", first, "\n");
  absl::StrAppend(&mail, "Auto-Submitted: auto-generated\nMIME-Version: 1.0\n",
                  "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n",
                  EncodeBody(AsUtf8(Text(values, message.event))));
  return mail;
}

}  // namespace rollcall
