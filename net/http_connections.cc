// SPDX-License-Identifier: Apache-2.0
#include "net/http_connections.h"

#include <utility>

#include "base/peer_address.h"

namespace rollcall {

HttpConnection* HttpConnections::Add(HttpConnection connection) {
  connection.id = next_id_++;
  return &(all_[connection.id] = std::move(connection));
}

HttpConnection* HttpConnections::Find(uint64_t id) {
  const auto at = all_.find(id);
  return at == all_.end() ? nullptr : &at->second;
}

HttpConnection* HttpConnections::FindReplaceable(int64_t now_ns) {
  std::map<absl::string_view, size_t> of_address;
  for (const auto& [id, connection] : all_) ++of_address[PeerWithoutPort(connection.peer)];
  HttpConnection* found = nullptr;
  size_t most = 0;
  for (auto& [id, connection] : all_) {
    if (!IsReplaceable(connection, now_ns)) continue;
    const size_t count = of_address[PeerWithoutPort(connection.peer)];
    const bool is_older = found == nullptr || connection.since_ns < found->since_ns;
    if (count < most || (count == most && !is_older)) continue;
    found = &connection;
    most = count;
  }
  return found;
}

HttpConnection* HttpConnections::FindStalledBody(int64_t now_ns) {
  for (auto& [id, connection] : all_) {
    if (IsStalledBody(connection, now_ns)) return &connection;
  }
  return nullptr;
}

std::vector<HttpConnection*> HttpConnections::FindLate(const HttpLimits& limits, int64_t now_ns) {
  std::vector<HttpConnection*> late;
  for (auto& [id, connection] : all_) {
    if (IsLate(connection, limits, now_ns)) late.push_back(&connection);
  }
  return late;
}

}  // namespace rollcall
