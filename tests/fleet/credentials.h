// SPDX-License-Identifier: Apache-2.0
// How the hosts of the fleet show themselves to the daemon.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "tests/fleet/load_options.h"

namespace rollcall::fleet {

// One certificate for all hosts, or plaintext without `tls_ca`. nullptr if a file cannot be read;
// this function has printed which.
std::shared_ptr<grpc::ChannelCredentials> MakeCredentials(const LoadOptions& options);

}  // namespace rollcall::fleet
