// SPDX-License-Identifier: Apache-2.0
// The connection of an agent, or of the command line, to a daemon.
#pragma once

#include <memory>
#include <string>

namespace grpc {
class Channel;
}

namespace rollcall {

// Does not wait for the connection. A daemon's host that vanishes is noticed after minutes; until
// then the connection holds, also to a daemon that does not answer for a while.
std::shared_ptr<grpc::Channel> ConnectToDaemon(const std::string& address);

}  // namespace rollcall
