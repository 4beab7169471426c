// SPDX-License-Identifier: Apache-2.0
// Answers the calls that no service of the daemon has: "unimplemented" to a known caller, so that a
// newer client can distinguish a missing call from a refused one, and the usual refusal to all
// others. gRPC itself would show strangers which calls there are.
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
