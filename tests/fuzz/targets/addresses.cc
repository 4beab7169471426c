// SPDX-License-Identifier: Apache-2.0
// Short texts of strangers: addresses, names of hosts and tenants, base64url.
#include "base/digest/digest.h"
#include "base/names.h"
#include "base/peer_address.h"
#include "base/server_address.h"
#include "fuzz_target.h"
#include "security/pki/pki_names.h"
#include "security/token_list.h"

namespace rollcall {
namespace fuzz {
namespace {

void CheckPeer(const std::string& text) {
  const auto peer = ParsePeer(text);
  if (!peer.has_value()) return;
  Promise(peer->port != 0, "a peer has a port");
  Promise(IsPeerOnThisHost(text) == peer->IsLoopback(), "only the loopback is this host");
  Promise(!IsUnixPeer(text), "an IP address is not a socket");
}

void CheckServer(const std::string& text) {
  const ServerAddress server = SplitServerAddress(text);
  Promise(server.host.size() + server.port.size() <= text.size(), "the parts are within the text");
  Promise(!IsOnThisHost(text) || server.is_unix || !server.host.empty(),
          "no host is not this host");
  (void)IsIpAddress(server.host);
}

void Run(Input input) {
  const std::string text(input.TakeRest());
  CheckPeer(text);
  CheckServer(text);
  const auto bytes = FromBase64Url(text);
  Promise(!bytes.has_value() || ToBase64Url(*bytes) == text, "bytes have one text");
  Promise(!IsPlainName(text) || text.find('/') == std::string::npos, "a plain name has no slash");
  Promise(!IsTenantName(text) || text.find(':') == std::string::npos, "no tenant has a colon");
  (void)IsTokenForm(text);
  (void)IsHostPattern(text);
  (void)RoleInUri(text);
  (void)CheckPkiName(text);
  (void)CheckPkiDomain(text);
}

const Registered kTarget({"addresses", 512, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
