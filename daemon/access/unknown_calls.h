// SPDX-License-Identifier: Apache-2.0
// Answers the calls that no service of the daemon has: "unimplemented" to a caller whom the daemon
// knows, so that a newer client can tell a call that is missing from one that is refused, and the
// usual refusal to everybody else. gRPC itself would tell strangers which calls there are.
//
// Thread-safe. Reads no request.
#pragma once

#include <memory>

namespace grpc {
class CallbackGenericService;
}

namespace rollcall {

class Access;

class UnknownCalls {
 public:
  // `access` must outlive this object.
  explicit UnknownCalls(const Access* access);
  ~UnknownCalls();

  // For gRPC. Lives as long as this object.
  grpc::CallbackGenericService* service();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
