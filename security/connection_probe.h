// SPDX-License-Identifier: Apache-2.0
// Why a connection to a daemon fails. gRPC reports "Socket closed" for almost everything; a
// handshake of our own shows more.
#pragma once

#include <string>

#include "security/certificates/tls_files.h"

namespace rollcall {

// Call it after a failed call, with what the call used: `tls` is nullptr without TLS, and
// `server_name` is "" for the host of the address. Connects to `address` (as SplitServerAddress()
// reads it) once and waits for the network, at most some eight seconds and the time that names
// take. Thread-safe.
//
// Returns one sentence for people, with the flag to add, or "" if TLS is not the reason: no server
// listens there, or the handshake succeeds.
std::string ExplainFailedConnection(const std::string& address, const TlsContents* tls,
                                    const std::string& server_name);

}  // namespace rollcall
