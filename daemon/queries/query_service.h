// SPDX-License-Identifier: Apache-2.0
// The gRPC service for the command line (query.proto). Converts requests and responses; QuerySource
// gives the answers. gRPC's threads call it. No lock.
#pragma once

#include <memory>

#include "daemon/access/audit.h"

namespace grpc {
class Service;
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

  // Register it with a server. This object must outlive the server.
  grpc::Service* service();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
