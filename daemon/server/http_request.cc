// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/http_request.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// What decides how long a request is, and for whom. A proxy in front could read two of them in
// another way than we do.
struct Framing {
  int hosts = 0, lengths = 0;
  uint64_t body = 0;
};

// Returns the HTTP status of the refusal; 0: none.
int ReadLine(absl::string_view line, Framing* framing) {
  const size_t colon = line.find(':');
  const absl::string_view name = line.substr(0, colon);
  if (colon == absl::string_view::npos || name.empty()) return 400;
  if (name.find_first_of(" \t") != absl::string_view::npos) return 400;
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) return 411;
  if (absl::EqualsIgnoreCase(name, "Host") && ++framing->hosts > 1) return 400;
  if (!absl::EqualsIgnoreCase(name, "Content-Length")) return 0;
  const bool is_number = value.find_first_not_of("0123456789") == absl::string_view::npos &&
                         absl::SimpleAtoi(value, &framing->body);
  return ++framing->lengths > 1 || !is_number ? 400 : 0;
}

}  // namespace

RequestEnd FindRequestEnd(std::string_view bytes) {
  const size_t head = bytes.find(kHeadEnd);
  if (std::min(head, bytes.size()) > kMostHeadBytes) return {0, 431};
  if (head == std::string_view::npos) return {};
  Framing framing;
  const size_t first = std::min(bytes.find("\r\n"), head);
  for (size_t at = first + 2; at < head;) {
    const size_t end = std::min(bytes.find("\r\n", at), head);
    const int refusal = ReadLine(View(bytes.substr(at, end - at)), &framing);
    if (refusal != 0) return {0, refusal};
    at = end + 2;
  }
  if (framing.body > kMostBodyBytes) return {0, 413};
  const size_t size = head + kHeadEnd.size() + framing.body;
  return {bytes.size() < size ? 0 : size, 0};
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
