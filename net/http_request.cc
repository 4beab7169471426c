// SPDX-License-Identifier: Apache-2.0
#include "net/http_request.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLineEnd = "\r\n";

// What the handlers of the page and httplib's own code look at.
constexpr absl::string_view kKnownFields[] = {
    "Accept",         "Accept-Encoding", "Authorization",  "Connection",    "Content-Length",
    "Content-Type",   "Cookie",          "Host",           "If-None-Match", "Origin",
    "Sec-Fetch-Dest", "Sec-Fetch-Mode",  "Sec-Fetch-Site", "X-Rollcall"};

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// The lines of a head, one after the other, without their ends.
struct HeadLines {
  std::string_view head;  // without the empty line at its end

  // Takes the next line. Returns false after the last one.
  bool Next(absl::string_view* line) {
    if (head.data() == nullptr) return false;
    const size_t end = std::min(head.find(kLineEnd), head.size());
    *line = View(head.substr(0, end));
    head = end == head.size() ? std::string_view() : head.substr(end + kLineEnd.size());
    return true;
  }
};

struct Field {
  absl::string_view name, value;
};

Field Split(absl::string_view line) {
  const size_t colon = std::min(line.find(':'), line.size());
  return {line.substr(0, colon),
          absl::StripAsciiWhitespace(line.substr(std::min(colon + 1, line.size())))};
}

// What decides how long a request is, and for whom. A proxy in front could read two of them in
// another way than we do.
struct Framing {
  int fields = 0, hosts = 0, lengths = 0;
  uint64_t body = 0;
};

// Whether other programs could see more lines in this line than we do.
bool HasControls(absl::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](char c) { return c != '\t' && absl::ascii_iscntrl(c); });
}

// Returns the HTTP status of the refusal, or 0.
int CheckLength(const Field& field, Framing* framing) {
  const bool is_number = field.value.find_first_not_of("0123456789") == absl::string_view::npos &&
                         absl::SimpleAtoi(field.value, &framing->body);
  return ++framing->lengths > 1 || !is_number ? 400 : 0;
}

// Likewise.
int CheckField(absl::string_view line, Framing* framing) {
  if (line.size() > kMostLineBytes || ++framing->fields > kMostFields) return 431;
  const Field field = Split(line);
  const bool has_colon = field.name.size() < line.size();
  if (!has_colon || field.name.empty() || HasControls(line)) return 400;
  if (field.name.find_first_of(" \t") != absl::string_view::npos) return 400;
  const auto is = [&field](absl::string_view name) {
    return absl::EqualsIgnoreCase(field.name, name);
  };
  if (is("Transfer-Encoding")) return 411;
  if (is("Content-Encoding") && !absl::EqualsIgnoreCase(field.value, "identity")) return 415;
  if (is("Content-Type") && absl::StartsWithIgnoreCase(field.value, "multipart/")) return 415;
  if (is("Host") && ++framing->hosts > 1) return 400;
  return is("Content-Length") ? CheckLength(field, framing) : 0;
}

bool IsKnown(absl::string_view name) {
  const auto is_it = [name](absl::string_view known) {
    return absl::EqualsIgnoreCase(known, name);
  };
  return std::any_of(std::begin(kKnownFields), std::end(kKnownFields), is_it);
}

// The size of the request with this head, and its body, or why it is refused.
RequestEnd ReadHead(std::string_view head, size_t most_body_bytes) {
  HeadLines lines{head};
  absl::string_view line;
  lines.Next(&line);
  if (line.size() > kMostLineBytes) return {0, 414};
  if (HasControls(line)) return {0, 400};
  Framing framing;
  while (lines.Next(&line)) {
    const int refusal = CheckField(line, &framing);
    if (refusal != 0) return {0, refusal};
  }
  if (framing.body > most_body_bytes) return {0, 413};
  return {head.size() + kHeadEnd.size() + framing.body, 0};
}

}  // namespace

RequestEnd FindRequestEnd(std::string_view bytes) { return RequestFinder().Find(bytes); }

RequestEnd RequestFinder::Find(std::string_view bytes) {
  if (size_ == 0) {
    // The end may have begun in the bytes before.
    const size_t from = searched_ - std::min(searched_, kHeadEnd.size() - 1);
    const size_t head = bytes.find(kHeadEnd, from);
    searched_ = bytes.size();
    if (std::min(head, bytes.size()) > kMostHeadBytes) return {0, 431};
    if (head == std::string_view::npos) return {};
    const RequestEnd whole = ReadHead(bytes.substr(0, head), most_body_bytes_);
    if (whole.refusal != 0) return whole;
    size_ = whole.size;
    body_bytes_ = whole.size - head - kHeadEnd.size();
  }
  return {bytes.size() < size_ ? 0 : size_, 0};
}

std::string KeepKnownFields(std::string_view request) {
  const size_t head = std::min(request.find(kHeadEnd), request.size());
  HeadLines lines{request.substr(0, head)};
  absl::string_view line;
  lines.Next(&line);
  std::string kept = absl::StrCat(line, "\r\n");
  while (lines.Next(&line)) {
    const Field field = Split(line);
    if (!IsKnown(field.name)) continue;
    if (!absl::EqualsIgnoreCase(field.name, "Accept-Encoding")) {
      absl::StrAppend(&kept, line, "\r\n");
    } else if (absl::StrContains(field.value, "gzip")) {
      kept += "Accept-Encoding: gzip\r\n";  // httplib's brotli takes a hundred times as long
    }
  }
  return absl::StrCat(kept, "\r\n",
                      View(request.substr(std::min(head + kHeadEnd.size(), request.size()))));
}

std::string CredentialFields(std::string_view request) {
  HeadLines lines{request.substr(0, std::min(request.find(kHeadEnd), request.size()))};
  absl::string_view line;
  lines.Next(&line);
  std::string fields;
  while (lines.Next(&line)) {
    const absl::string_view name = Split(line).name;
    const bool is_one =
        absl::EqualsIgnoreCase(name, "Authorization") || absl::EqualsIgnoreCase(name, "Cookie");
    if (is_one) absl::StrAppend(&fields, line, "\r\n");
  }
  return fields;
}

std::string_view RequestPath(std::string_view request) {
  for (const std::string_view method : {"GET ", "HEAD "}) {
    if (request.substr(0, method.size()) != method) continue;
    request.remove_prefix(method.size());
    return request.substr(0, std::min(request.find_first_of(" ?\r\n"), request.size()));
  }
  return {};
}

}  // namespace rollcall
