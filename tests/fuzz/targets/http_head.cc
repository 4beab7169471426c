// SPDX-License-Identifier: Apache-2.0
// What the page reads of a request before a library parses it: its end in the bytes of a
// connection, and the host that it names.
#include "daemon/web/http_site.h"
#include "fuzz_target.h"
#include "net/http_request.h"

namespace rollcall {
namespace fuzz {
namespace {

void CheckHosts(std::string_view header) {
  static const auto& hosts = *new HttpHosts({"node-17", "*.page.example"});
  if (hosts.Knows(header, {})) {
    Promise(!HostIn(header).empty(), "a known host has a name");
    Promise(header.find('\0') == std::string_view::npos, "a known host has no NUL in its name");
  }
  Promise(AuthorityIn(header).size() < header.size() || header.empty(), "a URL has a scheme");
}

void Run(Input input) {
  const std::string_view bytes = input.TakeRest();
  CheckHosts(bytes.substr(0, bytes.find("\r\n")));
  const RequestEnd end = FindRequestEnd(bytes);
  Promise(end.size <= bytes.size(), "a request ends within its bytes");
  Promise(end.size == 0 || end.refusal == 0, "no refused request is served");
  const std::string_view path = RequestPath(bytes);
  Promise(path.find_first_of(" ?\r\n") == std::string_view::npos, "a path ends at its end");
  if (end.size == 0) return;
  const RequestEnd alone = FindRequestEnd(bytes.substr(0, end.size));
  Promise(alone.size == end.size, "what follows does not change a request");
}

const Registered kTarget({"http_head", 4096, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
