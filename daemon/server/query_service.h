// SPDX-License-Identifier: Apache-2.0
// The gRPC service that the command line asks (query.proto). Knows how a question comes and how its
// answer goes; the answers are QuerySource's. Called on gRPC's threads; locks nothing.
#pragma once

#include <memory>

namespace grpc {
class Service;
}

namespace rollcall {

class QuerySource;

class QueryService {
 public:
  // `queries` outlives this object.
  explicit QueryService(QuerySource* queries);
  ~QueryService();

  // To be registered with a server that this object outlives.
  grpc::Service* service();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
