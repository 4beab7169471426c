// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/http_request.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// The value of the header in this line. False: it is another one.
bool TakeHeader(absl::string_view line, absl::string_view name, absl::string_view* value) {
  if (!absl::StartsWithIgnoreCase(line, name)) return false;
  line.remove_prefix(name.size());
  if (!absl::ConsumePrefix(&line, ":")) return false;
  *value = absl::StripAsciiWhitespace(line);
  return true;
}

}  // namespace

RequestEnd FindRequestEnd(std::string_view bytes) {
  const size_t head = bytes.find(kHeadEnd);
  if (std::min(head, bytes.size()) > kMostHeadBytes) return {0, 431};
  if (head == std::string_view::npos) return {};
  uint64_t body = 0;
  for (size_t at = 0; at < head;) {
    const size_t end = std::min(bytes.find("\r\n", at), head);
    const absl::string_view line = View(bytes.substr(at, end - at));
    absl::string_view value;
    if (TakeHeader(line, "Transfer-Encoding", &value)) return {0, 411};
    if (TakeHeader(line, "Content-Length", &value) && !absl::SimpleAtoi(value, &body)) {
      return {0, 400};
    }
    at = end + 2;
  }
  if (body > kMostBodyBytes) return {0, 413};
  const size_t size = head + kHeadEnd.size() + body;
  return {bytes.size() < size ? 0 : size, 0};
}

std::string_view PathOf(std::string_view request) {
  for (const std::string_view method : {"GET ", "HEAD "}) {
    if (request.substr(0, method.size()) != method) continue;
    request.remove_prefix(method.size());
    return request.substr(0, std::min(request.find_first_of(" ?\r\n"), request.size()));
  }
  return {};
}

}  // namespace rollcall
