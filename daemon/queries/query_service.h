// SPDX-License-Identifier: Apache-2.0
// The gRPC service for the command line (query.proto). Converts requests and responses; QuerySource
// gives the answers. Also answers the calls that no service of the daemon has: "unimplemented" to a
// known caller, so that a newer client can distinguish a missing call from a refused one, and the
// usual refusal to all others. gRPC itself would show strangers which calls there are.
//
// gRPC's threads refuse callers. Threads of its own (question_threads.h) answer the known ones.
#pragma once

#include <memory>

#include "daemon/access/audit.h"

namespace grpc {
class CallbackGenericService;
}

namespace rollcall {

class Access;
class QuerySource;

class QueryService {
 public:
  // Both must outlive this object. `audit`: called for each action of an operator;
  // `refused`: with the reason for each that could not be done.
  QueryService(QuerySource* queries, const Access* access, AuditSink audit, AuditSink refused);
  ~QueryService();

  // For a server of gRPC, which this object must outlive.
  grpc::CallbackGenericService* service();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
